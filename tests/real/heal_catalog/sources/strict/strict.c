// an error since GCC 14: a pointer of another type
static unsigned table[4];

char *strict_bytes(void)
{
    char *bytes = table;
    return bytes;
}
