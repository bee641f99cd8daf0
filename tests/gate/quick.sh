# Chooses what `./test quick` runs: stages of ./test, over fewer packages and files. Sourced by ./test, which sets PROFILE.

QUICK=(tools python format build gate unit style licences cli)
# With the command and the catalog among them, packages have the features that they have in the whole workspace, so that nothing is built twice. The
# toy has a program of tests of the kind that the stage `unit` asks for and that not every crate has.
ALWAYS="-p hodo-cli -p hodo-catalog -p hodo-toy"

# quick [NAME...]: chooses what a change of these protocols needs, or of `crates`; without a name, what a change of the files needs that differ from
# the upstream branch. Sets CHOSEN, the stages; BUILT, the packages; and CLI, the tests of the command.
quick() {
    local file name since= listed
    local -a left=()
    local -A packages=() about=()
    if [[ $# -gt 0 ]]; then
        for name; do quick_names | grep -qxF -e "$name" || quick_usage "there is no '$name'"; done
        listed=$(for name; do compgen -G "$name/*/Cargo.toml" || compgen -G "protocols/$name/*/Cargo.toml"; done)
    else
        since=$(git rev-parse --abbrev-ref '@{upstream}' 2>/dev/null) || since=HEAD
        listed=$(changed_since "$since") || quick_usage "git does not say what differs from $since"
        [[ -n $listed ]] || quick_usage "nothing differs from $since"
    fi
    CHOSEN=(format style licences)
    while read -r file; do
        name=$(cut -d / -f 2 <<<"$file")
        case $file in
            protocols/*/*)
                [[ ! -d protocols/$name ]] || about[$name]=1
                for file in protocols/"$name"/*/Cargo.toml; do packages[$file]=1; done
                ;;
            crates/*/*) about[crates]=1 packages[crates/$name/Cargo.toml]=1 ;;
            fuzz/*) packages[fuzz/Cargo.toml]=1 ;;
            tests/toy/*) packages[tests/toy/Cargo.toml]=1 ;;
            tests/cli/test_*.py) [[ ! -e $file ]] || about[$file]=1 ;;
            test | tests/gate/* | .ci/*) CHOSEN+=(gate) ;;
            tests/style/* | tests/*.tsv | docs/* | *.md) ;;
            tests/cli/*) about[crates]=1 ;;
            tests/*/*) left+=("$file") ;;
            tests/*.py) about[crates]=1 ;;
            Cargo.*) about[crates]=1 && CHOSEN+=(unit) ;;
            *) left+=("$file") ;;
        esac
    done <<<"$listed"
    BUILT="$PROFILE $ALWAYS"
    for file in "${!packages[@]}"; do
        [[ ! -e $file ]] || BUILT+=$(sed -n 's/^name = "\(.*\)"$/ -p \1/p' "$file" | head -n 1)
    done
    CLI=tests/cli
    for name in "${!about[@]}"; do CLI+=" --about=$name"; done
    [[ ${#packages[@]} -eq 0 ]] || CHOSEN+=(unit)
    [[ ${#about[@]} -eq 0 ]] || CHOSEN+=(cli)
    [[ -z $since || ${#about[@]} -eq 0 ]] || echo "what differs from $since is about: ${!about[*]}"
    [[ ${#left[@]} -eq 0 ]] || echo "left to ./test: ${left[*]}"
}

# The files that are not as they were where this branch and another part, those that git has not been told of included.
changed_since() {
    local base
    base=$(git merge-base HEAD "$1") && git diff --name-only --no-renames "$base" && git ls-files --others --exclude-standard
}

quick_names() { echo crates && ls protocols; }

quick_usage() {
    echo "$1: ./test quick NAME, with a name of these: $(quick_names | paste -s -d ' ')" >&2
    exit 2
}
