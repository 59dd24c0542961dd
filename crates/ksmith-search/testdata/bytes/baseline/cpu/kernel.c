#include <stdint.h>

void bytes(const uint8_t *text, uint8_t *upper, int64_t *letters, int64_t n) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        uint8_t c = text[i];
        if (c >= 'a' && c <= 'z') {
            upper[i] = (uint8_t)(c - 32);
            found += 1;
        } else {
            upper[i] = c;
            if (c >= 'A' && c <= 'Z') found += 1;
        }
    }
    letters[0] = found;
}
