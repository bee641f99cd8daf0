# Runs stages one after the other and counts their tests. Sourced by ./test, which sets:
#
#   STAGES, ASKED_FOR, LONG   names of stages, in their order; of each, ABOUT has a sentence
#   NEEDS                     the stages that a stage needs
#   BESIDE                    stages that run concurrently with those that follow them
#   LOGS                      the folder of the logs
#   LIMIT_MIN                 minutes for a whole run
#
# A stage is a function, stage_NAME, whose output is that of cargo test or pytest where it runs tests.

# What the caller has set that changes what tests do.
SETTINGS=$(compgen -e HODO | grep -vx HODO_CI | paste -s -d ' ')

# run_stages STAGE...: these stages and what they need, and the summary.
run_stages() {
    local stage need missing
    for stage in "$@"; do
        [[ " ${STAGES[*]} ${ASKED_FOR[*]} " = *" $stage "* ]] || { echo "unknown stage '${stage#long_}'; ./test --list names the stages" >&2; exit 2; }
    done
    mkdir -p "$LOGS" && rm -f "$LOGS/passed" || exit 2
    trap 'STOPPED=1; kill ${CHILD:-} "${LANES[@]}" 2>/dev/null' INT TERM
    for stage in $(in_order "$@"); do
        missing=
        for need in ${NEEDS[$stage]:-}; do
            join "$need"
            [[ ${FAILED_OF[$need]:-0} -eq 0 ]] || missing=$need
        done
        [[ -z ${STOPPED:-} ]] || break
        if [[ -n $missing ]]; then
            rm -rf "$LOGS/records/$stage"
            row "$stage" 0 1 0 "not run ($missing failed)" 0 0
        else
            start "$stage"
            [[ -v BESIDE[$stage] ]] || join "$stage"
        fi
    done
    for stage in "${!LANES[@]}"; do join "$stage"; done
    summary
}

# run_everything: all STAGES. Where they passed, on one commit without a change to it and with nothing set that changes them, $LOGS/passed then
# holds the id of its tree.
run_everything() {
    local before status
    before=$(checked_out)
    run_stages "${STAGES[@]}"
    status=$?
    [[ $status -eq 0 ]] || return $status
    if [[ -n $SETTINGS ]]; then
        echo "not noted in $LOGS/passed: $SETTINGS is set" >&2
    elif [[ -z $before || $(checked_out) != "$before" ]]; then
        echo "not noted in $LOGS/passed: the commit was not the same before and after, or there are changes that are not committed" >&2
    else
        echo "${before#* }" >"$LOGS/passed"
    fi
}

# The commit that is checked out and its tree, or nothing where there are changes that are not committed.
checked_out() {
    local changes
    changes=$(git status --porcelain --untracked-files=normal 2>&1) && [[ -z $changes ]] && git rev-parse HEAD 'HEAD^{tree}' | paste -s -d ' '
}

# The processes of the stages that run.
declare -A LANES=()
# The failures of each stage that has ended.
declare -A FAILED_OF=()

# Runs a stage in a process of its own, whose children are the stage's. Its output and its counts are printed when it is joined.
start() {
    local stage=$1
    rm -f "$LOGS/$stage.table"
    (
        trap 'STOPPED=1; kill ${CHILD:-} 2>/dev/null' INT TERM
        TABLE=()
        run_stage "$stage"
        printf '%s\n' "${TABLE[@]}" >"$LOGS/$stage.table"
    ) >"$LOGS/$stage.output" 2>&1 &
    LANES[$stage]=$!
}

# Waits for a stage, if it runs.
join() {
    local stage=$1
    [[ -v LANES[$stage] ]] || return 0
    wait "${LANES[$stage]}"
    # Once more where a signal has ended the first wait.
    wait "${LANES[$stage]}" 2>/dev/null
    unset "LANES[$stage]"
    cat "$LOGS/$stage.output"
    TABLE+=("$(cat "$LOGS/$stage.table" || printf '%s\t0\t1\t0\tFAILED\t0\t0' "$stage")")
    FAILED_OF[$stage]=$(cut -f 3 <<<"${TABLE[-1]}")
}

list_stages() {
    local stage
    for stage in "${STAGES[@]}" "${ASKED_FOR[@]}"; do printf '    %-19s %s\n' "$stage" "${ABOUT[$stage]}"; done
    for stage in "${LONG[@]}"; do [[ $stage != long_* ]] || printf '    %-19s %s\n' "long ${stage#long_}" "${ABOUT[$stage]}"; done
}

# The chosen stages and what they need, in the order of STAGES.
in_order() {
    local -A wanted=()
    local stage need
    for stage in "$@"; do
        wanted[$stage]=1
        for need in ${NEEDS[$stage]:-}; do wanted[$need]=1; done
    done
    for stage in "${STAGES[@]}" "${ASKED_FOR[@]}"; do [[ -v wanted[$stage] ]] && echo "$stage"; done
}

# A row for each stage that has ended: its name, how many passed, how many failed, seconds, its result, how many of the seconds cargo compiled,
# seconds of CPU.
TABLE=()

run_stage() {
    local stage=$1 log=$LOGS/$1.log started=$SECONDS status passed failed skipped
    local -x RECORDS=$LOGS/records/$1
    rm -rf "$RECORDS" && mkdir -p "$RECORDS" || exit 2
    "stage_$stage" >"$log" 2>&1 </dev/null
    status=$?
    read -r passed failed skipped < <(counts "$log")
    # What was left out counts as failed: a peer or a tool that is missing is never passed over.
    failed=$((failed + skipped))
    [[ $status -eq 0 && $failed -eq 0 && $passed -eq 0 ]] && passed=1
    [[ $status -ne 0 && $failed -eq 0 ]] && failed=1
    local result=passed
    [[ $failed -ne 0 ]] && result=FAILED
    [[ $failed -ne 0 && $SECONDS -ge $((LIMIT_MIN * 60)) ]] && result="FAILED (the run's $LIMIT_MIN minutes are over)"
    [[ -n ${STOPPED:-} ]] && result=interrupted
    times >"$log.times"
    row "$stage" "$passed" "$failed" $((SECONDS - started)) "$result" "$(compiling "$log")" "$(children "$log.times")"
    [[ $failed -eq 0 || -n ${STOPPED:-} ]] || { echo "    what failed in $log, and its end:"; { failures "$log"; tail -n 60 "$log"; } | without_addresses | sed 's/^/    | /'; }
}

# recorded COMMAND...: runs a command of tests. Its status is recorded beside what its programs record of their tests (hodo-test-runner, hodo-pytest).
recorded() {
    local status
    local -x HODO_TEST_RECORD
    HODO_TEST_RECORD=$(mktemp "$RECORDS/XXXXXX.jsonl") || return 1
    "$@"
    status=$?
    echo "{\"status\": $status}" >>"$HODO_TEST_RECORD"
    return $status
}

# row STAGE PASSED FAILED SECONDS RESULT COMPILING CPU: prints and keeps a stage that has ended.
row() {
    TABLE+=("$(paste -s <(printf '%s\n' "$@"))")
    FAILED_OF[$1]=$3
    formatted <<<"${TABLE[-1]}"
}

formatted() { awk -F '\t' '{
    sub(/^long_/, "long ")
    printf "%-19s%6d passed %4d failed %6d s %6d s %6d s   %s\n", $1, $2, $3, $6 < $4 ? $6 : $4, $6 < $4 ? $4 - $6 : 0, $7, $5
}'; }

# The seconds that cargo and rustdoc say that they have compiled.
compiling() {
    awk '
        match($0, /^ *Finished .* in /) || match($0, /compilation took /) {
            count = split(substr($0, RSTART + RLENGTH), parts, " ")
            for (i = 1; i <= count; i++) s += parts[i] * (parts[i] ~ /h$/ ? 3600 : parts[i] ~ /m$/ ? 60 : 1)
        }
        END { printf "%d\n", s + 0.5 }' "$1"
}

# The seconds of CPU of the children, user and system, of what the shell says of its times: of each a pair as 1m2.345s.
children() { awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, part, "m"); s += 60 * part[1] + part[2] } printf "%d\n", s + 0.5 }' "$1"; }

# Names the failed tests with their first lines, which the tests after them may have moved away from the end.
failures() {
    awk '
        /^---- .* stdout ----$/ { rest = 12 }
        /^test .* FAILED$/ && !rest { rest = 1 }
        /^_+ [^ ].* _+$/ { print; reasons = 4 }
        /^E  / && reasons > 0 { print substr($0, 1, 300); reasons-- }
        rest > 0 { print substr($0, 1, 500); rest-- }' "$1" | head -n 100
}

# Passed, failed and left out, as cargo test and pytest say it. What is ignored for `./test long timing` is not left out.
counts() {
    awk '
        /^running [0-9]+ tests?$/ { timing = 0 }
        /^test .* \.\.\. ignored, timing$/ { timing++ }
        /^test result: / { for (i = 1; i < NF; i++) { if ($(i+1) ~ /^passed/) p += $i; if ($(i+1) ~ /^failed/) f += $i; if ($(i+1) ~ /^ignored/) s += $i - timing }; timing = 0 }
        /^(=+ )?[0-9]+ (passed|failed|skipped|error|xfailed|deselected).* in [0-9.]+s/ {
            for (i = 1; i < NF; i++) { if ($(i+1) ~ /^passed/) p += $i; if ($(i+1) ~ /^(failed|error|xfailed)/) f += $i; if ($(i+1) ~ /^skipped/) s += $i }
        }
        END { print p + 0, f + 0, s + 0 }' "$1"
}

# Where packages come from is the machine's own business: it stays out of what is printed.
without_addresses() { sed -E 's#[a-z+]+://[^ ]+#(address)#g; /^ *(Updating|Downloading|Locking).*(index|crates)/d; /indexes?:/d'; }

# What failed is run once more, alone (hodo-again): what passes then is unsteady, and as many of them as this do not make a run fail.
MOST_UNSTEADY=3

summary() {
    local passed failed unsteady
    rm -f "$LOGS/unsteady.tsv"
    printf '%s\n' "${TABLE[@]}" >"$LOGS/table"
    [[ -n ${STOPPED:-} ]] || ! cut -f 3 "$LOGS/table" | grep -qvx 0 || { echo; echo "what failed, once more, alone:"; limited hodo-again "$LOGS"; }
    [[ -e $LOGS/unsteady.tsv ]] || : >"$LOGS/unsteady.tsv"
    # They hold the caller's environment.
    rm -rf "$LOGS/records"
    echo
    printf '%-19s%13s %11s %8s %8s %8s   %s\n' stage passed failed compiles runs CPU result
    formatted <"$LOGS/table"
    read -r passed failed < <(awk -F '\t' '{ p += $2; f += $3 } END { print p + 0, f + 0 }' "$LOGS/table")
    [[ -n ${STOPPED:-} ]] && { echo "interrupted: the stages after this were not run"; failed=$((failed + 1)); }
    echo
    echo "$passed passed, $failed failed"
    unsteady=$(wc -l <"$LOGS/unsteady.tsv")
    if [[ $unsteady -gt 0 ]]; then
        echo "$unsteady unsteady: $(awk -F '\t' '{ printf "%s%s", between, $1; between = ", " }' "$LOGS/unsteady.tsv")"
        [[ $unsteady -le $MOST_UNSTEADY ]] || echo "more than $MOST_UNSTEADY unsteady ones: the run has failed"
        echo "rows for tests/unsteady.tsv, unless they are there:"
        cat "$LOGS/unsteady.tsv"
    fi
    [[ $failed -eq 0 && $unsteady -le $MOST_UNSTEADY ]]
}

# In the background, so that an interrupt is noticed at once; with SIGINT as usual, which background commands lack.
limited() {
    local left=$((LIMIT_MIN * 60 - SECONDS))
    [[ -z ${STOPPED:-} ]] || return 130
    [[ $left -gt 0 ]] || return 124
    env --default-signal=INT timeout --kill-after=10 "$left" "$@" &
    CHILD=$!
    wait "$CHILD"
    local status=$?
    [[ -z ${STOPPED:-} ]] || { wait "$CHILD"; status=130; }
    CHILD=
    return $status
}

# How to become root here: nothing as root, sudo where it asks no password, else a failure.
as_root() {
    if [[ $(id -u) -eq 0 ]]; then
        limited "$@"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        limited sudo -n "$@"
    else
        echo "this needs root, or sudo without a password: $*"
        return 1
    fi
}

