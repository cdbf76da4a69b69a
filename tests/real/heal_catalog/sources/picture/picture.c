#include <png.h>

unsigned picture_version(void) { return (unsigned)png_access_version_number(); }
