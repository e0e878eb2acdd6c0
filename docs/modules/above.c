/* The module above.wat in C:
 *
 *     clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -Wl,--export=select -o above.wasm above.c
 */
typedef struct __attribute__((packed)) {
    unsigned int id;
    double energy;
} event;

/* Selects records of 12 bytes whose energy is above 7.5. Their numbers are their ids. */
int select(const event *records, int count, int record_bytes, long long *answers)
{
    if (record_bytes != sizeof *records)
        return 1;
    for (int i = 0; i < count; i++)
        if (records[i].energy > 7.5)
            answers[i] = records[i].id; /* all other answers are -1 */
    return 0;
}
