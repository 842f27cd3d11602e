# Several ranks train to the bits of one process, for every task, and resume each other's runs.
source "$(dirname "$test_file")/mpi.bash"
pairs >pairs.tsv

# Translation: validation, averaging, accumulation, snapshots of attention, five shards that no number of ranks divides.
train=(train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 24 --hidden 24 --rate 0.01 --batch-rows 16 --seed 3 --epochs 6
  --shards 5 --checkpoint-seconds 0.01 --valid-share 0.1 --average-last 0.5 --attention-every 3 --accumulate 2 --quiet)
run "${train[@]}" -o alone
[[ $code == 0 ]] || mismatch "alone: $err"
for ranks in 1 2 3 4; do
  mpi $ranks "${train[@]}" -o ranks$ranks
  [[ $code == 0 && -z $err ]] || mismatch "$ranks ranks: exit code $code: $err"
  same_bits alone ranks$ranks
  cmp <(cd alone && find . -type f | sort) <(cd ranks$ranks && find . -type f | sort) || mismatch "other files with $ranks ranks"
done

# A Transformer with one shard per rank: its gradient leaves while the backward pass runs.
train=(train --kind transformer --data pairs.tsv --tokenizer spaces --min-count 1 --hidden 32 --layers 2 --heads 4 --ffn 64 --dropout 0.1
  --batch-rows 32 --rate 0.003 --valid-share 0.1 --epochs 2 --shards 4 --quiet --threads 1)
run "${train[@]}" -o tiny1
mpi 4 "${train[@]}" -o tiny4
[[ $code == 0 ]] || mismatch "a Transformer: exit code $code: $err"
same_bits tiny1 tiny4

# A run that one process began is continued by four, by two, and ended by one.
train=(train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 16 --hidden 16 --batch-rows 32 --seed 5 --valid-share 0.1 --shards 4 --quiet)
run "${train[@]}" -o whole --epochs 8
run "${train[@]}" -o parts --epochs 2
mpi 4 "${train[@]}" -o parts --epochs 4
[[ $code == 0 ]] || mismatch "four ranks resume: exit code $code: $err"
mpi 2 "${train[@]}" -o parts --epochs 6
run "${train[@]}" -o parts --epochs 8
same_bits whole parts

# A language model, and a classifier of images with augmentation.
for i in 1 2 3 4 5 6; do cut -f 1 pairs.tsv; done >text.txt
train=(train --kind language --text text.txt --tokenizer characters --layers 1 --hidden 16 --ffn 32 --heads 2 --context 16 --batch-rows 16 --shards 4
  --epochs 1 --valid-share 0.1 --dropout 0.1 --quiet)
run "${train[@]}" -o text1
[[ $code == 0 ]] || mismatch "language alone: $err"
mpi 2 "${train[@]}" -o text2
[[ $code == 0 ]] || mismatch "language: exit code $code: $err"
same_bits text1 text2
train=(train --kind vision --images pictures --picture-count 320 --image-size 16 --patch 4 --hidden 16 --ffn 16 --heads 2 --layers 1
  --batch-rows 32 --shift 1 --flip true --epochs 1 --shards 4 --quiet)
run "${train[@]}" -o vision1
[[ $code == 0 ]] || mismatch "vision alone: $err"
mpi 2 "${train[@]}" -o vision2
[[ $code == 0 ]] || mismatch "vision: exit code $code: $err"
same_bits vision1 vision2

# What rank 0 prints is what one process prints, and the speed is that of all ranks.
mpi 2 train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 16 --hidden 16 --batch-rows 32 --epochs 2 --shards 2 -o shown
expect_match 'epoch 2/2 step [0-9]+/[0-9]+ loss [0-9.]+ [0-9,]+ tok/s \(2 ranks, slowest [01]: computes [0-9]+ %\)' "$err"
expect_match 'next: echo .* \| qkv translate --model shown' "$err"
checks=$((checks + 1))
[[ $(grep -c 'trained in' <<<"$err") == 1 ]] || mismatch "rank 0 alone prints: $err"
# Fewer shards than ranks: said once, with the setting; the result is the same.
run train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 16 --hidden 16 --batch-rows 32 --epochs 2 --shards 2 -o few1 --quiet
mpi 4 train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 16 --hidden 16 --batch-rows 32 --epochs 2 --shards 2 -o few4
same_bits few1 few4
checks=$((checks + 1))
[[ $(ours) == 'qkv: note: 4 ranks share 2 shards (training.shards): 2 of them compute nothing; --shards 4 gives each a part, and changes the last bits of the result' ]] ||
  mismatch "fewer shards than ranks: $err"
