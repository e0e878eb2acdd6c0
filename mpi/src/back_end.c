/* back_end.c - the back end as its front end sees it: its functions by their numbers. */
#include "errors/errors.h"
#include "transfers/transfers.h"

static back_t back;

__attribute__((visibility("default"))) unisono_mpi_back_t unisono_mpi_back;

const back_t *unisono_mpi_back(const front_t *given)
{
    if (given->version != BORDER_VERSION)
        return NULL;
    front_end_set(given);
    handles_set(given->handles);
    back.version = BORDER_VERSION;
    back.to_fortran = file_to_fortran;
    back.from_fortran = file_from_fortran;
    back.is_mounted = path_is_mounted;
    back.read_start = read_start;
    back.truncate = truncate_file;
    back.requests_pending = &requests_pending;
    back.causes_kept = &causes_kept;
    back.forget_cause = cause_forget;
    back.handler_made = handler_made;
    back.handler_made_in_fortran = handler_made_in_fortran;
    back.handler_is_cxx = handler_is_cxx;
    errors_enter(back.functions);
    handlers_enter(back.functions);
    open_enter(back.functions);
    close_enter(back.functions);
    sizes_enter(back.functions);
    hints_enter(back.functions);
    view_enter(back.functions);
    access_enter(back.functions);
    requests_enter(back.functions);
    return &back;
}
