#include <stdint.h>

void reference(const int64_t *x, int64_t *count, int64_t n) {
    for (int64_t i = 0; i < 256; i++) count[i] = 0;
    for (int64_t i = 0; i < n; i++) count[x[i]]++;
}
