#include <stdint.h>

void reference(const int64_t *text, int64_t *upper, int64_t *letters, int64_t n) {
    letters[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int lower = text[i] >= 'a' && text[i] <= 'z';
        upper[i] = lower ? text[i] - 32 : text[i];
        letters[0] += lower || (text[i] >= 'A' && text[i] <= 'Z');
    }
}
