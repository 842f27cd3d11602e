# For tests of distributed jobs: mpi RANKS ARGS... runs the program in that many processes; code, out and err as `run`.
command -v mpirun >/dev/null || { echo "skipped: mpirun is not installed"; exit 77; }
plugin=$(dirname "$QKV")/..
compgen -G "$plugin/lib*/qkv/mpi.so" >/dev/null || compgen -G "$plugin/lib/*/qkv/mpi.so" >/dev/null ||
  { echo "skipped: this build has no plug-in for MPI"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
mpi() {
  local ranks=$1
  shift
  mpirun -n "$ranks" "$QKV" "$@" >"$folder/out" 2>"$folder/err" </dev/null
  code=$?
  out=$(cat "$folder/out") err=$(cat "$folder/err")
}
# ours: the lines of standard error that the program wrote, without those that mpirun adds.
ours() { grep '^qkv: \|^hint: ' "$folder/err"; }
sum_of() { sha256sum <"$1/model.safetensors"; }
# same_bits FOLDER FOLDER: the same weights, and the same losses after every epoch.
same_bits() {
  checks=$((checks + 1))
  [[ -s $1/model.safetensors && $(sum_of "$1") == "$(sum_of "$2")" ]] || mismatch "$1 and $2 have other weights"
  cmp <(grep -o '"step":[0-9]*,"loss":[0-9.e-]*' "$1/metrics.jsonl") <(grep -o '"step":[0-9]*,"loss":[0-9.e-]*' "$2/metrics.jsonl") ||
    mismatch "$1 and $2 have other losses"
  cmp <(grep -o '"valid_loss":[0-9.e-]*' "$1/metrics.jsonl") <(grep -o '"valid_loss":[0-9.e-]*' "$2/metrics.jsonl") ||
    mismatch "$1 and $2 have other validation losses"
}
pairs() {
  local names=(nul un deux trois quatre cinq) a b c
  for a in 0 1 2 3 4 5; do for b in 0 1 2 3 4 5; do for c in 0 1 2 3 4 5; do
    printf '%s %s %s\t%s %s %s\n' $a $b $c ${names[c]} ${names[b]} ${names[a]}
  done; done; done
}
