# A function for scripts that run long commands; to be read in with `.`.

# watched WHAT COMMAND...: runs a command whose output goes to a log. Says what it does, every 10
# seconds also for how long and the last line of the log, and shows the log if the command fails.
watched() (
    what=$1
    shift
    log=$(mktemp "${TMPDIR:-/tmp}/unisono-log.XXXXXX")
    echo "$what"
    (
        seconds=0
        # This `sleep` may outlive the script, so it holds no stream of the caller.
        while sleep 10 </dev/null >/dev/null 2>&1; do
            seconds=$((seconds + 10))
            line=$(tr '\r' '\n' <"$log" | sed '/^ *$/d' | tail -n 1 | cut -c 1-70)
            echo "$what: $seconds s${line:+, $line}"
        done
    ) &
    ticker=$!
    trap 'kill "$ticker" 2>/dev/null || true; rm -f "$log"' EXIT
    trap 'exit 130' INT TERM HUP
    status=0
    "$@" >"$log" 2>&1 </dev/null || status=$?
    [ "$status" = 0 ] || cat "$log" >&2
    exit "$status"
)
