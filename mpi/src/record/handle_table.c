/* handle_table.c - hash tables by handles of MPI, which grow. */
#include "recording.h"

#include <stdlib.h>

enum { CHAINS_AT_FIRST = 256 };

static struct handle_chain *chain_of(const handle_table_t *table, uint64_t word)
{
    uint64_t mixed = (word ^ (word >> 32)) * 0x9E3779B97F4A7C15u;
    return &table->chains[(mixed >> 32) & (table->chain_count - 1)];
}

static void append(handle_table_t *table, handle_entry_t *entry)
{
    struct handle_chain *chain = chain_of(table, entry->word);
    entry->next = NULL;
    if (chain->last)
        chain->last->next = entry;
    else
        chain->first = entry;
    chain->last = entry;
}

/* Doubles the number of chains. Entries with the same handle stay in their order. */
static int grow(handle_table_t *table)
{
    handle_table_t larger = {.chain_count = table->chain_count ? 2 * table->chain_count
                                                               : CHAINS_AT_FIRST};
    larger.chains = calloc(larger.chain_count, sizeof *larger.chains);
    if (!larger.chains)
        return 0;
    for (size_t i = 0; i < table->chain_count; i++)
        for (handle_entry_t *entry = table->chains[i].first, *next; entry; entry = next) {
            next = entry->next;
            append(&larger, entry);
        }
    larger.count = table->count;
    free(table->chains);
    *table = larger;
    return 1;
}

void table_add(handle_table_t *table, handle_entry_t *entry, uint64_t word)
{
    entry->word = word;
    if (table->count >= table->chain_count && !grow(table) && !table->chains) {
        stream_fail("not enough memory");
        return;
    }
    append(table, entry);
    table->count++;
}

handle_entry_t *table_find(const handle_table_t *table, uint64_t word)
{
    if (!table->count)
        return NULL;
    handle_entry_t *entry = chain_of(table, word)->first;
    while (entry && entry->word != word)
        entry = entry->next;
    return entry;
}

void table_remove(handle_table_t *table, handle_entry_t *entry)
{
    if (!table->chains)
        return;
    struct handle_chain *chain = chain_of(table, entry->word);
    handle_entry_t *before = NULL, *found = chain->first;
    while (found && found != entry) {
        before = found;
        found = found->next;
    }
    if (!found)
        return;
    if (before)
        before->next = entry->next;
    else
        chain->first = entry->next;
    if (chain->last == entry)
        chain->last = before;
    table->count--;
}
