# A training that is killed at random moments and restarted ends with the same bits. KILLS is the number of kills (the slow suite: 50).
names=(nul un deux trois quatre cinq)
for a in 0 1 2 3 4 5; do for b in 0 1 2 3 4 5; do for c in 0 1 2 3 4 5; do
  printf '%s %s %s\t%s %s %s\n' $a $b $c ${names[c]} ${names[b]} ${names[a]}
done; done; done >pairs.tsv
train=(train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 24 --hidden 24 --rate 0.01 --batch-rows 16 --seed 3 --epochs 60
  --checkpoint-seconds 0.001 --valid-share 0.1 --average-last 0.05 --attention-every 5 --accumulate 3 --quiet)
SECONDS=0
run "${train[@]}" -o whole
[[ $code == 0 ]] || mismatch "the whole run: $err"
sum=$(sha256sum <whole/model.safetensors)
RANDOM=11 killed=0
start=$(date +%s%N); rm -rf timing; "$QKV" "${train[@]}" -o timing; took=$(( ($(date +%s%N) - start) / 1000000 ))
while (( killed < ${KILLS:-4} )); do
  "$QKV" "${train[@]}" -o killed & child=$!
  sleep "$(printf '0.%03d' $(( RANDOM % (took < 900 ? took : 900) )))"
  if kill -KILL $child 2>/dev/null; then killed=$((killed + 1)); fi
  wait $child 2>/dev/null; code=$?
  [[ $code == 137 || $code == 0 ]] || { mismatch "kill $killed left a run that cannot resume: exit code $code"; break; }
  if [[ $code == 0 ]]; then
    [[ $(sha256sum <killed/model.safetensors) == "$sum" ]] || mismatch "other bits after $killed kills"
    rm -rf killed
  fi
done
run "${train[@]}" -o killed
[[ $code == 0 && $(sha256sum <killed/model.safetensors) == "$sum" ]] || mismatch "other bits after $killed kills: $err"
checks=$((checks + 1))
cmp <(grep -o '"step":[0-9]*,"loss":[0-9.e-]*' whole/metrics.jsonl) <(grep -o '"step":[0-9]*,"loss":[0-9.e-]*' killed/metrics.jsonl) || mismatch "other metrics"
