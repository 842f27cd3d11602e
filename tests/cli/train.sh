# qkv train, translate and inspect on a toy language: digits to words, in reverse.
names=(nul un deux trois quatre cinq)
for a in 0 1 2 3 4 5; do for b in 0 1 2 3 4 5; do for c in 0 1 2 3 4 5; do
  (( (a + b + c) % 2 )) || printf '%s %s %s\t%s %s %s\n' $a $b $c ${names[c]} ${names[b]} ${names[a]}
done; done; done >pairs.tsv
settings=(--data pairs.tsv --tokenizer spaces --min-count 1 --embed 24 --hidden 24 --rate 0.01 --batch-rows 16 --seed 3)

# A run, what it writes, and a second start that finds it finished.
run train "${settings[@]}" --epochs 40 -o run
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
expect_match '^108 pairs, vocabularies 10 and 10, 10,834 parameters, run' "$err"
expect_match 'epoch 40/40 step 280/280 loss 0\.[0-9]+ [0-9,]+ tok/s.*trained in [0-9:]+: run/model\.safetensors has the last weights
  [0-5] [0-5] [0-5] => [a-z ]+
  [0-5] [0-5] [0-5] => [a-z ]+
next: echo .* \| qkv translate --model run
or:   qkv inspect --model run .*$' "$err"
# The suggested next command works unchanged, and prints the translation that was shown.
next=$(sed -n 's/^next: //p' <<<"$err") shown=$(sed -n 's/^  .* => //p' <<<"$err" | head -n 1)
out=$(qkv() { "$QKV" "$@"; }; eval "$next" 2>&1)
expect_out "$shown"
for file in config.yaml model.safetensors metrics.jsonl train.log checkpoints/last.safetensors vocab.source.txt; do
  [[ -s run/$file ]] || mismatch "run/$file is missing"
done
sum=$(sha256sum <run/model.safetensors)
expect 0 $'108 pairs, vocabularies 10 and 10, 10,834 parameters, run\nrun: already finished; nothing was trained (--restart starts over)' \
  train "${settings[@]}" --epochs 40 -o run
[[ $(sha256sum <run/model.safetensors) == "$sum" ]] || mismatch "a finished run changed its model"
run train "${settings[@]}" --epochs 40 -o run --restart --quiet
[[ $code == 0 && -z $err && $(sha256sum <run/model.safetensors) == "$sum" ]] || mismatch "--restart: other bits, or words: $err"
expect 1 'qkv: error: cannot open no.tsv: No such file or directory' train --data no.tsv -o run --restart
[[ $(sha256sum <run/model.safetensors) == "$sum" ]] || mismatch "--restart removed a run before it could begin another"

# The same from a file; a setting that differs; dumps.
run train "${settings[@]}" --epochs 40 --dump-config
printf '%s\n' "$out" >own.yaml
run train -c own.yaml --seed 3 -o from_file -q
[[ $(sha256sum <from_file/model.safetensors) == "$sum" ]] || mismatch "the dumped configuration gives another model"
expect 1 $'qkv: error: run/config.yaml: model.layers is 1, but 2 was requested\nhint: --layers 1 resumes it; --restart starts over; -o names another folder' \
  train "${settings[@]}" --epochs 40 --layers 2 -o run

# Translation: order, empty lines, scores, n-best, JSON.
out=$(printf '1 2 3\n\n5 4 3\n' | "$QKV" translate --model run)
expect_out $'trois deux un\n\ntrois quatre cinq'
out=$(printf '1 2 3\n' | "$QKV" translate --model run --beam 3 --nbest 2)
expect_match $'^1 \\|\\|\\| trois deux un \\|\\|\\| -[0-9.]+ \\|\\|\\| -[0-9.]+\n1 \\|\\|\\| ' "$out"
out=$(printf '1 2 3\r\n' | "$QKV" translate --model run --scores)
expect_match $'^trois deux un\t-[0-9.]+\t-[0-9.]+$' "$out"
out=$(printf '1 2 3\n' | "$QKV" translate --model run --json --attention)
expect_match '"source_tokens":\["1","2","3","<eos>"\].*"text":"trois deux un","hypotheses":\[.*"attention":\[\[\[' "$out"
out=$(printf '1 2 3\n1 seven 3\n' | "$QKV" translate --model run 2>&1 >/dev/null)
expect_out 'qkv: note: standard input: line 2: not in the vocabulary: seven'
out=$(printf '1 seven 3\n' | "$QKV" translate --model run --quiet 2>&1 >/dev/null)
expect_out ''
printf '1 2 3\n' >in.txt
expect 1 'qkv: error: in.txt: is a file; expected a folder that qkv train wrote' translate --model in.txt
expect 0 '' translate --model run in.txt
expect_out 'trois deux un'
out=$(printf 'a\xff\n' | "$QKV" translate --model run 2>&1); code=$?
[[ $code == 1 && $out == 'qkv: error: standard input: line 1: byte 2 is not UTF-8' ]] || mismatch "bad UTF-8: $code $out"
out=$(printf '%05000d\n' 0 | sed 's/0/0 /g' | "$QKV" translate --model run 2>&1); code=$?
[[ $code == 1 && $out == 'qkv: error: standard input: line 1: has 5000 tokens; a sentence may have at most 4096' ]] || mismatch "too long: $code $out"
{ yes '1 2' | head -n 5000; printf '%05000d\n' 0 | sed 's/0/0 /g'; } >long.txt
out=$("$QKV" translate --model run --max-length 1 <long.txt 2>&1 >/dev/null)
expect_out 'qkv: error: standard input: line 5001: has 5000 tokens; a sentence may have at most 4096'
expect 1 'qkv: error: long.txt: line 5001: has 5000 tokens; a sentence may have at most 4096' translate --model run --max-length 1 long.txt
# Lines before an unreadable one are translated.
[[ $(wc -l <<<"$out") == 5000 ]] || mismatch "lines before the bad one of a file: $(wc -l <<<"$out")"
[[ $("$QKV" translate --model run --max-length 1 <long.txt 2>/dev/null | wc -l) == 5000 ]] || mismatch 'lines before the bad one of standard input'
[[ $(printf '1 2\n3 4\na\xff\n' | "$QKV" translate --model run 2>/dev/null | wc -l) == 2 ]] || mismatch 'lines before a bad byte'
expect 0 'qkv: note: in.txt: line 1: cut off after 1 token (--max-length)' translate --model run --max-length 1 in.txt
run train --data pairs.tsv --tokenizer spaces --min-count 1 --hidden 8 --embed 8 --epochs 2 --log-format json -o logged
[[ $code == 0 && -n $err && -z $(grep -v '^{.*}$' <<<"$err") ]] || mismatch "--log-format json: $code $err"
# Standard input is read like a file: a byte order mark is not a word, and unreadable input is not an empty text.
out=$(printf '\xef\xbb\xbf1 2 3\n' | "$QKV" translate --model run)
expect_out 'trois deux un'
out=$("$QKV" translate --model run 2>&1 <.); code=$?
[[ $code == 1 && $out == 'qkv: error: cannot read standard input' ]] || mismatch "a folder as input: $code $out"
# A program that waits for a translation before it sends the next line gets it.
coproc "$QKV" translate --model run --json
printf '1 2 3\n5 4' >&"${COPROC[1]}"; sleep 0.2; printf ' 3\n1 1\n' >&"${COPROC[1]}"
for line in 1 2 3; do
  read -r -t 20 out <&"${COPROC[0]}" || mismatch "no answer to line $line"
  expect_match "^\\{\"line\":$line," "$out"
done
eval "exec ${COPROC[1]}>&-"; wait "$COPROC_PID" || mismatch "the conversation ended with code $?"

# Pictures of the attention.
expect 0 '' inspect --model run 1 2 3 -o heat.svg
expect_out $'trois deux un\nheat.svg'
expect_match '<svg' "$(head -c 300 heat.svg)"
printf '1 2 3\ttrois deux un\n' >one.tsv
printf '0-2 1-1 2-0\n' >one.align
expect 0 '' inspect --model run --pairs one.tsv --line 1 --gold one.align -o heat.png
expect 0 '' inspect --model run 1 2 3 -o heat.npz
expect 0 '' inspect --model run 1 2 3 -o heat.html
expect 0 '' inspect --model run 1 2 3 --json
expect_match '"target_tokens":\["trois","deux","un","<eos>"\]' "$out"
expect 0 '' inspect --model run 1 2 3
expect_match 'trois' "$out"
printf '0-7\n' >far.align
expect 1 'qkv: error: far.align: line 1: the link 0-7 is outside the 3 source and 3 target words' \
  inspect --model run --pairs one.tsv --line 1 --gold far.align -o heat.png
expect 1 'qkv: error: the sentence: line 1: not UTF-8: byte 0xff at offset 2' inspect --model run $'1 \xff' --json
expect 1 'qkv: error: the translation: line 1: not UTF-8: byte 0xff at offset 0' inspect --model run 1 --target $'\xff' -o bad.svg
expect 1 'qkv: error: the sentence is empty' inspect --model run ' ' --target un
expect 1 'qkv: error: the translation is empty' inspect --model run 1 --target ' '

# Word alignments from the attention.
run align --model run --pairs one.tsv --gold one.align
[[ $code == 0 ]] || mismatch "align: $err"
expect_match '^AER [0-9.]+ %' "$out"
expect 0 '' align --model run --pairs one.tsv
expect_match '^[0-2]-[0-2]( [0-2]-[0-2])+$' "$out"

# SIGTERM saves and stops; the same command resumes; the result is the same.
"$QKV" train "${settings[@]}" --epochs 100000 -o stopped 2>stopped.err & child=$!
for _ in {1..200}; do [[ -s stopped/metrics.jsonl ]] && break; sleep 0.05; done
kill -TERM $child; wait $child; code=$?
[[ $code == 130 ]] || mismatch "after SIGTERM: exit code $code: $(cat stopped.err)"
expect_match 'stopped after step [0-9]+ of 700000; repeat the command to resume$' "$(cat stopped.err)"
out=$(printf '1 2 3\n' | "$QKV" translate --model stopped 2>&1 >/dev/null)
expect_out 'qkv: note: the run is not finished; its weights so far are used: stopped/checkpoints/last.safetensors'
[[ -s stopped/checkpoints/last.safetensors && ! -e stopped/model.safetensors ]] || mismatch "SIGTERM: no checkpoint, or a model"

# Two trainings in one folder: the second is refused, but a killed one does not block the folder.
"$QKV" train "${settings[@]}" --epochs 100000 -o busy -q & child=$!
for _ in {1..200}; do [[ -s busy/metrics.jsonl ]] && break; sleep 0.05; done
expect 1 "qkv: error: busy: another process is training in this folder (process $child)" train "${settings[@]}" --epochs 100000 -o busy
expect 1 "qkv: error: busy: another process is training in this folder (process $child)" train "${settings[@]}" --epochs 1 -o busy --restart
kill -KILL $child; wait $child 2>/dev/null
run train "${settings[@]}" --epochs 1 -o busy --restart -q
[[ $code == 0 && ! -e busy/train.lock && -s busy/model.safetensors ]] || mismatch "after a kill: exit code $code: $err"

# Gradients of several batches in one step.
run train "${settings[@]}" --epochs 2 --accumulate 4 -o accumulated
expect_match 'epoch 2/2 step 4/4 loss' "$err"
expect 1 $'qkv: error: accumulated/config.yaml: training.accumulate is 4, but 2 was requested\nhint: --accumulate 4 resumes it; --restart starts over; -o names another folder' \
  train "${settings[@]}" --epochs 2 --accumulate 2 -o accumulated
expect 2 'qkv: error: --accumulate: got "0", expected a whole number from 1 to 1000000' train "${settings[@]}" --accumulate 0 -o x

# A note if a preset's tokenizer does not fit the text, unless it was chosen explicitly.
sed 's/^[^\t]*/&./; s/$/./' pairs.tsv >attached.tsv
small=(--preset bahdanau --hidden 8 --embed 8 --epochs 1 --log-format plain)
note='qkv: note: data.tokenizer is spaces, from the preset bahdanau, but 100 % of the sentences have punctuation attached to words: "0." is one word to this model; --tokenizer words or bpe separates them'
run train "${small[@]}" --data attached.tsv -o attached
[[ $code == 0 && $err == *$'\n'"$note"$'\n'* ]] || mismatch "no note about the tokenizer: $code $err"
run train "${small[@]}" --data attached.tsv --tokenizer words -o parted
[[ $code == 0 && $err != *note:* ]] || mismatch "a note about a tokenizer that was chosen: $code $err"
run train "${small[@]}" --data pairs.tsv -o tokens
[[ $code == 0 && $err != *note:* ]] || mismatch "a note about text that has no punctuation: $code $err"

# More subwords than the text gives, or fewer than it has characters: the error gives the setting and the nearest value that works.
pieces=(--data pairs.tsv --tokenizer bpe --embed 8 --hidden 8 --epochs 1 -q)
expect 1 $'qkv: error: data.vocabulary is 1000, but a side of the text gives at most 17 subwords\nhint: --vocabulary 17' \
  train "${pieces[@]}" --vocabulary 1000 -o pieces
run train "${pieces[@]}" --vocabulary 1000 --shared-vocabulary true -o pieces
most=${err##* }
expect_match "^qkv: error: data\.vocabulary is 1000, but the text gives at most $most subwords"$'\n'"hint: --vocabulary $most$" "$err"
[[ ! -e pieces ]] || mismatch "a folder for a run that cannot be"
expect 0 '' train "${pieces[@]}" --vocabulary "$most" --shared-vocabulary true -o pieces
head -c 10000000 /dev/zero | tr '\0' a >line.txt  # it would take gigabytes to cut it into subwords
expect 1 'qkv: error: line.txt: line 1: has 10,000,000 bytes; a sentence may have at most 65,536' translate --model pieces line.txt
{ cat pairs.tsv; tr 'a' ' ' <line.txt | head -c 70000 | sed 's/ / a/g'; printf '\tb\n'; } >long.tsv
expect 1 'qkv: error: [subwords] a sentence has 139,999 bytes, expected at most 65,536' train --data long.tsv "${pieces[@]:2}" --vocabulary 8 -o long
run train "${pieces[@]}" --vocabulary 8 -o few
least=${err##* }
expect_match "^qkv: error: data\.vocabulary is 8, but the characters of a side of the text need at least $least subwords"$'\n'"hint: --vocabulary $least$" "$err"

# Bad input.
expect 2 $'qkv: error: nothing to train: give --preset NAME, -c config.yaml or --data FILE\nhint: qkv train --preset transformer needs no file' train
expect 1 'qkv: error: cannot open no.tsv: No such file or directory' train --data no.tsv -o x
expect 1 'qkv: error: cannot open no.txt: No such file or directory' train --preset bahdanau --source no.txt --target no.txt -o x
expect 2 'qkv: error: --epochs: got "9223372036854775807", expected a whole number from 1 to 1000000000' train --data pairs.tsv --epochs 9223372036854775807 -o x
printf 'a\tb\nonly one column\n' >bad.tsv
run train --data bad.tsv -o x
[[ $code == 1 ]] || mismatch "one column: exit code $code"
expect_match '^qkv: error: bad\.tsv.*line 2' "$err"
printf 'a\nb\n' >two.txt; printf 'a\n' >one.txt
run train --source two.txt --target one.txt -o x
expect_match 'two\.txt has 2 lines, one\.txt has 1: ' "$err"
printf 'training:\n  epoch: 3\n' >bad.yaml
expect 1 $'qkv: error: bad.yaml:2: unknown key "epoch" in the block "training"\nhint: did you mean "epochs"?' train -c bad.yaml --data pairs.tsv -o x
expect 2 'qkv: error: --epochs: got "many", expected a whole number from 1 to 1000000000' train --data pairs.tsv --epochs many -o x
expect 1 $'qkv: error: nowhere: no such folder; expected one that qkv train wrote\nhint: qkv train --preset NAME makes one in runs/NAME; qkv train --help lists the presets' translate --model nowhere
[[ ! -e x ]] || mismatch "a refused command left the folder x"
cp -r run broken; head -c 2000 run/model.safetensors >broken/model.safetensors
run translate --model broken
[[ $code == 1 ]] || mismatch "a cut model: exit code $code"
expect_match '^qkv: error: broken/model\.safetensors' "$err"
cp -r run other; sed -i 's/hidden: 24/hidden: 32/' other/config.yaml
run translate --model other
expect_match '^qkv: error: other/model\.safetensors: "[a-z.]+[^"]*" has shape .*, but configuration and vocabularies say ' "$err"
cp -r run specials; sed -i '/<eos>/d' specials/vocab.target.txt
run translate --model specials
[[ $code == 1 ]] || mismatch "a vocabulary without <eos>: exit code $code"
expect_match '^qkv: error: specials/vocab\.target\.txt.*<eos>' "$err"
# A sorted vocabulary may lack <bos>, as the English edition's source does; the target side begins with it.
sed 's/<bos>/zwei/' run/vocab.target.txt | LC_ALL=C sort >specials/vocab.target.txt
expect 1 'qkv: error: specials/vocab.target.txt: the special token <bos> is missing: translations begin with it' translate --model specials

# A warm-up longer than the training: an error for a cosine, which leaves no files; a note for a plain warm-up.
expect 1 $'qkv: error: training.warmup is 400, but the whole training has 14 updates\nhint: use a smaller --warmup or more --epochs' \
  train "${settings[@]}" --epochs 2 --schedule cosine --warmup 400 -o cosine
[[ ! -e cosine ]] || mismatch "a schedule that cannot be left the folder cosine"
run train "${settings[@]}" --epochs 2 --schedule warmup --warmup 400 -o warm
expect_match 'note: training\.warmup is 400, but the whole training has 14 updates' "$err"
expect_match 'trained in 0:[0-9]+: warm/model\.safetensors has the last weights' "$err"
run train "${settings[@]}" --epochs 3 --valid-share 0.2 --average-decay 0.5 -o mean
expect_match 'mean/model\.safetensors has the running mean of the weights, validation loss [0-9.]+' "$err"
expect_match 'finished at step' "$(cat mean/train.log)"

# Killed before its first checkpoint: nothing derived from the old data is kept.
cp pairs.tsv changed.tsv
changed=(train --data changed.tsv "${settings[@]:2}" -q)
run "${changed[@]}" --epochs 2 -o early
rm -r early/model.safetensors early/checkpoints
{ head -n 60 pairs.tsv; printf '7 7\tsept sept\n7 7\tsept sept\n'; } >changed.tsv
run "${changed[@]}" --epochs 2 -o early
[[ $code == 0 ]] || mismatch "before the first checkpoint: $code $err"
run "${changed[@]}" --epochs 2 -o anew
for file in model.safetensors vocab.source.txt config.yaml; do cmp -s early/$file anew/$file || mismatch "before the first checkpoint: another $file than anew"; done
# A result without its checkpoint is neither overwritten nor lost.
cp -r anew alone; rm alone/checkpoints/last.safetensors
expect 1 $'qkv: error: alone: has model.safetensors but no checkpoints/last.safetensors to resume from\nhint: --restart removes it and starts over; -o names another folder' \
  "${changed[@]}" --epochs 2 -o alone
cmp -s anew/model.safetensors alone/model.safetensors || mismatch "the model of a run without a checkpoint changed"
# A failed start leaves the settings unchanged.
mv changed.tsv gone.tsv
expect 1 'qkv: error: cannot open changed.tsv: No such file or directory' "${changed[@]}" --epochs 4 -o anew
{ cat gone.tsv; printf '7 7 7\tsept sept\n'; } >changed.tsv
run "${changed[@]}" --epochs 4 -o anew
expect_match '^qkv: error: anew/checkpoints/last.safetensors: was trained on data that differs from the files as they are now' "$err"
mv gone.tsv changed.tsv
expect 0 '' "${changed[@]}" --epochs 2 -o anew
# A configuration alone is not a run, and is not changed.
mkdir own; printf '# mine\ndata:\n  pairs: pairs.tsv\n' >own/config.yaml; cp own/config.yaml mine.yaml
for how in '' --restart; do
  expect 1 $'qkv: error: own: has config.yaml, but is not a run: there is no tokenizer.source.txt\nhint: choose another folder with -o' train -c own/config.yaml -o own $how
  [[ $(ls -A own) == config.yaml ]] && cmp -s own/config.yaml mine.yaml || mismatch "own/config.yaml was touched: $(ls -A own)"
done
expect 1 'qkv: error: data.pairs en-fr has its own validation data: data.valid_pairs, data.valid_source and data.valid_share do not apply' \
  train --data en-fr --valid-share 0.1 -o x
printf 'a\rb c\td e\n' >inside.tsv
expect 1 'qkv: error: the training text has a carriage return inside a sentence; lines must end in LF or CRLF' train --data inside.tsv --tokenizer spaces --min-count 1 -o x
[[ ! -e x ]] || mismatch "a refused command left the folder x"
cp anew/model.safetensors before.safetensors; cp inside.tsv changed.tsv
run "${changed[@]}" --epochs 2 -o anew --restart
[[ $code == 1 ]] && cmp -s before.safetensors anew/model.safetensors || mismatch "--restart with data that cannot be used: $code $err"
# Files that do not belong to a run are not removed.
mkdir -p theirs/attention theirs/checkpoints; echo code >theirs/attention/attend.cpp; echo weights >theirs/checkpoints/epoch1.pt
expect 1 $'qkv: error: theirs: has checkpoints, but is not a run: there is no tokenizer.source.txt\nhint: choose another folder with -o' train "${settings[@]}" -o theirs --restart
[[ -s theirs/attention/attend.cpp && -s theirs/checkpoints/epoch1.pt ]] || mismatch "--restart removed files of others"
# A longer training that is killed before its first checkpoint leaves the shorter one unchanged; after it, the model is its own.
cp pairs.tsv changed.tsv
run "${changed[@]}" --epochs 2 -o longer
run "${changed[@]}" --epochs 4 -o direct
cp -r longer killed; cp longer/model.safetensors short.safetensors
cp direct/checkpoints/last.safetensors killed/checkpoints/last.safetensors; cp direct/config.yaml killed/config.yaml  # killed between checkpoint and model
run "${changed[@]}" --epochs 4 -o killed
cmp -s direct/model.safetensors killed/model.safetensors || mismatch "killed before the model was written: another model"
# If more epochs are refused, the error says why.
run train "${settings[@]}" --epochs 2 --schedule cosine -o wave -q
expect 1 $'qkv: error: wave/config.yaml: training.epochs is 2, but 3 was requested: the learning rates, or the mean of the last weights, depend on it\nhint: --epochs 2 resumes it; --restart starts over; -o names another folder' \
  train "${settings[@]}" --epochs 3 --schedule cosine -o wave -q

# Weights that are not finite end the training with one line, at any step; they are not written to any file.
# With a rate of 1e38 the update overflows; with 1e20 the weights are finite, but the loss computed with them is not.
spoilt=(--preset transformer --data pairs.tsv --valid-share 0.2 --hidden 8 --ffn 16 --heads 2 --layers 1 --schedule constant --warmup 0 --average-last 0 --batch-rows 1000 --epochs 1)
for rate in 1e38 1e20; do
  run train "${spoilt[@]}" --rate $rate -o spoilt-$rate -q
  [[ $code == 1 && $(grep -c '^qkv: error: ' <<<"$err") == 1 ]] || mismatch "rate $rate: $code $err"
  [[ ! -e spoilt-$rate/model.safetensors && -z $(ls spoilt-$rate/checkpoints) ]] || mismatch "rate $rate: weights were written"
done
expect_match 'the validation loss after epoch 1 is not a number: ' "$err"
expect 2 'qkv: error: --weight-decay: got "1e39", expected a number from 0 to 1e+38' train --data pairs.tsv --weight-decay 1e39 -o refused
expect 2 'qkv: error: --rate: got "1e39", expected a number from 0 to 1e+38' train --data pairs.tsv --rate 1e39 -o refused
