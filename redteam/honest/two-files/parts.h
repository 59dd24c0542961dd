#include <stdint.h>
void whole_row(const float *a, float *b, int64_t n);
