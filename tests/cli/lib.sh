# What the scripts of this folder share: source it first. Arguments of each script: MODELC BUILD_FOLDER.
set -u
modelc=${1:?usage: $0 MODELC BUILD_FOLDER}
build_folder=${2:?usage: $0 MODELC BUILD_FOLDER}
work=$(mktemp -d)
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
passed=0
failed=0
skipped=0

pass() { passed=$((passed + 1)); echo "ok      $1"; }
fail() { failed=$((failed + 1)); echo "FAILED  $1"; [ $# -gt 1 ] && printf '%s\n' "$2" | sed 's/^/        /'; return 0; }
skip() { skipped=$((skipped + 1)); echo "skipped $1"; }

# expect NAME STATUS TEXT… -- COMMAND…: the command ends with the status and prints each text.
expect() {
  local name=$1 status=$2 texts=() output code missing=""
  shift 2
  while [ "$1" != -- ]; do texts+=("$1"); shift; done
  shift
  output=$("$@" 2>&1)
  code=$?
  for t in ${texts[@]+"${texts[@]}"}; do
    case "$output" in *"$t"*) ;; *) missing="$missing
does not say: $t" ;; esac
  done
  if [ $code -eq "$status" ] && [ -z "$missing" ]; then pass "$name"
  else fail "$name" "status $code, expected $status$missing
$output"; fi
}

# Ends the script with its status: something passed, and nothing failed.
finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ $failed -eq 0 ] && [ $passed -gt 0 ]
}
