# A random rank of a job is killed at a random moment, and another number of ranks resumes: the same bits in the end.
# KILLS is the number of kills (the slow suite: 20).
source "$(dirname "$test_file")/mpi.bash"
pairs >pairs.tsv
train=(train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 24 --hidden 24 --rate 0.01 --batch-rows 16 --seed 3 --epochs 40
  --shards 6 --checkpoint-seconds 0.001 --valid-share 0.1 --average-last 0.1 --accumulate 2 --quiet)
run "${train[@]}" -o whole
[[ $code == 0 ]] || mismatch "the whole run: $err"
RANDOM=7 killed=0
while (( killed < ${KILLS:-1} )); do
  ranks=$((RANDOM % 4 + 1))
  mpirun -n $ranks "$QKV" "${train[@]}" -o killed >/dev/null 2>"$folder/err" </dev/null & job=$!
  sleep "$((RANDOM % 3)).$((RANDOM % 10))"
  victims=()
  for pid in $(pgrep -P $job); do victims+=("$pid"); done
  if (( ${#victims[@]} )) && kill -KILL "${victims[RANDOM % ${#victims[@]}]}" 2>/dev/null; then killed=$((killed + 1)); fi
  wait $job; code=$?
  if [[ $code == 0 && -s killed/model.safetensors ]]; then
    same_bits whole killed
    rm -rf killed
  elif grep -q '^qkv: error' "$folder/err" && ! grep -q '^qkv: error: rank [0-9]* on .* died' "$folder/err"; then
    mismatch "kill $killed left a run that cannot resume: $(cat "$folder/err")"
    break
  fi
done
mpi $((RANDOM % 4 + 1)) "${train[@]}" -o killed
[[ $code == 0 ]] || mismatch "after $killed kills: exit code $code: $err"
same_bits whole killed
