#include <stdint.h>

/* updated = cache with row slot[t] replaced by value[t]; slots are distinct. */
void reference(const double* cache, const double* value, const int64_t* slot, double* updated, int64_t tokens,
               int64_t slots, int64_t d) {
  for (int64_t i = 0; i < slots * d; i++) updated[i] = cache[i];
  for (int64_t t = 0; t < tokens; t++) {
    for (int64_t i = 0; i < d; i++) updated[slot[t] * d + i] = value[t * d + i];
  }
}
