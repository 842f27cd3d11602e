# Runs one command-line test: bash expect.bash TEST.sh, with QKV naming the program, in a fresh folder.
# A test calls `expect`; at the end every mismatch has been printed and any of them makes the exit code 1.
set -uo pipefail
test_file=$(realpath "$1")
: "${QKV:?names the program to test}"
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
mkdir work && cd work || exit 1
export LC_ALL=C.UTF-8
unset NO_COLOR
mismatches=0 checks=0

mismatch() { mismatches=$((mismatches + 1)); printf 'MISMATCH at %s line %s: %s\n' "$(basename "$test_file")" "${BASH_LINENO[1]}" "$1"; }

# run ARGS...: runs the program; code, out and err are what came of it.
run() {
  "$QKV" "$@" >"$folder/out" 2>"$folder/err" </dev/null
  code=$?
  out=$(cat "$folder/out") err=$(cat "$folder/err")
}

# expect CODE STDERR ARGS...: exact exit code and exact standard error; nothing on standard output when it fails with code 2.
expect() {
  local want_code=$1 want_err=$2
  shift 2
  run "$@"
  checks=$((checks + 1))
  [[ $code == "$want_code" ]] || mismatch "qkv $*: exit code $code, expected $want_code; it said: $err"
  [[ $err == "$want_err" ]] || mismatch "qkv $*: standard error is
$err
expected
$want_err"
  [[ $code != 2 || -z $out ]] || mismatch "qkv $*: printed $out"
}

# expect_out TEXT: what the last command printed, exactly. expect_match REGEX VALUE.
expect_out() { checks=$((checks + 1)); [[ $out == "$1" ]] || mismatch "printed
$out
expected
$1"; }
expect_match() { checks=$((checks + 1)); [[ $2 =~ $1 ]] || mismatch "no match of $1 in
$2"; }

# npy FILE DESCR SHAPE DATA: a version 1.0 file; DATA in printf's escapes.
npy() {
  local head
  head=$(printf "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" "$2" "$3")
  { printf '\x93NUMPY\x01\x00'; printf "\\x$(printf '%02x' ${#head})\\x00"; printf '%s' "$head"; printf "$4"; } >"$1"
}

# safetensors FILE HEADER DATA: a header of at most 255 bytes.
safetensors() { { printf "\\x$(printf '%02x' ${#2})\\0\\0\\0\\0\\0\\0\\0%s" "$2"; printf "$3"; } >"$1"; }

source "$test_file" || mismatch "the test itself failed"
echo "$checks checks, $mismatches mismatches"
((checks > 0 && mismatches == 0))
