# Shared by the bundles' scripts, which source it with `here` set to the bundle's folder.

out=${OUT:-./out}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)

if [ -z "${GRIDLET_TOOLKIT:-}" ] && [ -d /usr/local/cuda ]; then
    export GRIDLET_TOOLKIT=/usr/local/cuda
fi
# Folders that the tests otherwise find in the workspace.
export GRIDLET_PROGRAMS=$here/programs
export GRIDLET_ARTIFACTS=$here/artifacts

# Unpacks the programs and sets `programs` to their folder. A second run finds them by the archive's hash.
unpack() {
    local hash
    hash=$(cut -c1-16 "$here/programs.tar.xz.sha256") || exit 1
    programs=${GRIDLET_UNPACKED:-${TMPDIR:-/tmp}/gridlet-bundle-$(id -u)-$hash}
    if [ ! -f "$programs/complete" ]; then
        (cd "$here" && sha256sum --check --quiet programs.tar.xz.sha256) || {
            echo "programs.tar.xz is damaged: copy the bundle again" >&2
            exit 1
        }
        rm -rf "$programs.partial.$$" && mkdir -p "$programs.partial.$$" || exit 1
        if command -v xz >/dev/null; then
            tar -xJf "$here/programs.tar.xz" -C "$programs.partial.$$" || exit 1
        elif command -v python3 >/dev/null; then
            python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1], "r:xz").extractall(sys.argv[2])' \
                "$here/programs.tar.xz" "$programs.partial.$$" || exit 1
        else
            echo "unpacking needs xz or python3: install xz-utils" >&2
            exit 1
        fi
        rm -rf "$programs"
        mv "$programs.partial.$$" "$programs" && touch "$programs/complete" || exit 1
    fi
    # The bundle's copies of libraries, where this machine lacks one.
    if ldd "$programs"/bin/* "$programs"/tests/* 2>/dev/null | grep -q 'not found'; then
        export LD_LIBRARY_PATH=$programs/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    fi
    export GRIDLET_BIN=$programs/bin/gridlet
}

passed=0 failed=0 skipped=0

# step NAME SECONDS COMMAND...: runs the command in $out for at most that long and keeps its output in
# $out/NAME.log. A test program counts with its tests, anything else as one.
step() {
    local name=$1 limit=$2 log=$out/$1.log status start=$SECONDS
    shift 2
    echo "== $name"
    (cd "$out" && timeout --kill-after=10 "$limit" "$@") 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    if grep -q '^test result:' "$log"; then
        local good bad missing
        good=$(sum "$log" passed) bad=$(sum "$log" failed)
        # A test that cannot run here says so and passes.
        missing=$(grep -c '^SKIPPED: \|\.\.\. SKIPPED: ' "$log")
        missing=$((missing > good ? good : missing)) good=$((good - missing))
        skipped=$((skipped + missing + $(sum "$log" ignored)))
        # No test failed, but the tool around the program found something, or the program crashed at its end.
        if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1 good=$((good > 0 ? good - 1 : 0)); fi
        passed=$((passed + good)) failed=$((failed + bad))
    elif [ "$status" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
    case $status in
    0) ;;
    124 | 137) echo "!! $name did not end within $limit s" ;;
    *) echo "!! $name ended with status $status" ;;
    esac
    echo "-- $name: $((SECONDS - start)) s"
}

# sum LOG WHAT: adds up the counts of `N WHAT` in the lines `test result:` of the log.
sum() {
    awk -v what="$2" '/^test result:/ {
        for (i = 2; i <= NF; i++) { word = $i; sub(";", "", word); if (word == what) total += $(i - 1) }
    } END { print total + 0 }' "$1"
}

# The last line, and the exit status: 0 only if something passed and nothing failed.
finish() {
    echo "$passed passed, $failed failed, $skipped skipped" | tee "$out/summary.txt"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}
