/* Stands for a compiler: `cc1plus PEAK_MIB SECONDS LATE [OUT]` works for so many seconds of a processor and takes
   memory as it goes, up to its peak: evenly, or most of it after the share LATE of its time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double worked(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int count, char **words) {
    if (count < 4) return 2;
    size_t peak = strtoul(words[1], 0, 10) << 20, held = 0;
    double seconds = strtod(words[2], 0), late = strtod(words[3], 0);
    char *memory = mmap(0, peak, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 3;
    madvise(memory, peak, MADV_NOHUGEPAGE);
    volatile unsigned long sum = 1;
    for (double share; (share = worked() / seconds) < 1 || held < peak;) {
        double rest = (share - late) / (1 - late) * 1.2;
        double wanted = share >= 1 ? 1 : share < late ? 0.15 * share / late : 0.15 + 0.85 * (rest < 1 ? rest : 1);
        size_t target = (size_t)(wanted * peak);
        if (target > held + (8u << 20)) target = held + (8u << 20);
        if (target > held) memset(memory + held, 1, target - held), held = target;
        for (int turn = 0; turn < 200000; turn++) sum = sum * 6364136223846793005UL + 1;
    }
    FILE *out = count > 4 ? fopen(words[4], "w") : 0;
    if (out) fprintf(out, "%zu\n", held >> 20), fclose(out);
    return count > 4 && !out;
}
