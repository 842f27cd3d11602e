# The models that people train, over ranks: the bits of one process. The slow suite (ALL_RANKS=1) takes 1, 2, 3, 4 and 8 ranks, whole
# presets and a wide model; else a few epochs of the book's Transformer with 2 and 4. The book's file is used where it is.
source "$(dirname "$test_file")/mpi.bash"
file=${QKV_TEST_DATA:-$(dirname "$test_file")/../../../shared/data}/fra-eng/fra.txt
[[ -s $file ]] || { pairs >pairs.tsv; file=pairs.tsv; }
counts=(2 4)
[[ -z ${ALL_RANKS:-} ]] || counts=(1 2 3 4 8)
# model NAME ARGS...: one process, with as many threads as it likes, then every number of ranks with other numbers of threads.
model() {
  local name=$1 ranks
  shift
  run train "$@" --quiet -o "$name"
  [[ $code == 0 ]] || mismatch "$name alone: $err"
  for ranks in "${counts[@]}"; do
    mpi "$ranks" train "$@" --quiet --threads $((1 + ranks % 2)) -o "$name-$ranks"
    [[ $code == 0 ]] || mismatch "$name with $ranks ranks: exit code $code: $err"
    same_bits "$name" "$name-$ranks"
    rm -rf "$name-$ranks"
  done
  echo "$name: ${counts[*]} ranks, $(sum_of "$name" | cut -c 1-16)"
}
if [[ -z ${ALL_RANKS:-} ]]; then
  model d2l-transformer --preset d2l-transformer --data "$file" --epochs 2
else
  model d2l-transformer --preset d2l-transformer --data "$file" --epochs 10
  model transformer --preset transformer --corpus-size 4000 --epochs 1 --warmup 20
  model wide --kind transformer --data en-fr --corpus-size 5000 --tokenizer spaces --min-count 1 --limit 160 --hidden 512 --layers 2 --heads 8 \
    --ffn 2048 --dropout 0.1 --batch-rows 16 --epochs 1 --shards 8
fi
