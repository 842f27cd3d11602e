# Language models: qkv train, generate, score, inspect, check and info, and the inputs that they refuse.
for _ in $(seq 60); do echo 'one two three four'; done >text.txt
common=(--text text.txt --hidden 32 --ffn 64 --heads 2 --layers 2 --context 16 --batch-rows 8 --order random --epoch-batches 60 --rate 0.003)
lm=("${common[@]}" --dropout 0 --epochs 10)
run train "${lm[@]}" -o lm
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
expect_match '^1,026 tokens and 114 for validation \(characters, vocabulary 12\), [0-9,]+ parameters, lm' "$err"
expect_match 'next: qkv generate --model lm --prompt' "$err"
run train "${lm[@]}" -o lm
expect_match 'lm: already finished; nothing was trained' "$err"
run train "${lm[@]}" --tokenizer words --objective masked --quiet -o masked
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
run train "${common[@]}" --epochs 10 --tokenizer words --objective spans --quiet -o spans
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"

# Continues prompts, alone and together, streamed or not.
expect 0 '' generate --model lm --prompt 'one two' --temperature 0 --max-tokens 20
expect_out 'one two three four
one two '
expect 0 '' generate --model lm --prompt 'one two' --temperature 0 --stop '\n'
expect_out 'one two three four'
expect 0 '' generate --model lm --prompt 'one two' --prompt 'four\none' --temperature 0 --stop ' f' --only-new
expect_out ' three

 two three'
printf 'one two\nfour\n' >prompts.txt
expect 0 '' generate --model lm prompts.txt --temperature 0 --max-tokens 4 --json
expect_match '^\{"prompt":"one two","prompt_tokens":\["o","n","e","␣","t","w","o"\],"texts":\[\{"text":" thr","end":"length","log_probability":-[0-9.e-]+,"tokens":\[\{"token":"␣","probability":0\.9[0-9]+\},' "$out"
"$QKV" generate --model lm --temperature 0 --max-tokens 4 --json <prompts.txt >stdin.json || mismatch 'from standard input'
[[ $(cat stdin.json) == "$out" ]] || mismatch 'standard input gives other texts than a file'
expect 0 '' generate --model lm --prompt 'one two' --temperature 2 --max-tokens 30
first=$out
expect 0 '' generate --model lm --prompt 'one two' --temperature 2 --max-tokens 30 --threads 1
expect_out "$first"
expect 0 '' generate --model lm --prompt 'one two' --temperature 2 --max-tokens 30 --seed 5
[[ $out != "$first" ]] || mismatch 'another seed gives the same text'
expect 0 '' generate --model lm --prompt 'one two' --temperature 2 --top-k 1 --max-tokens 20
expect_out 'one two three four
one two '
expect 0 '' generate --model lm --prompt '' --temperature 0 --max-tokens 3
expect_out 'one'

# Prompts that the model does not know, or cannot read whole.
expect 0 'qkv: note: the prompt: not in the vocabulary: X, é' generate --model lm --prompt 'one Xé' --temperature 0 --max-tokens 1
expect 0 'qkv: note: the prompt: has 39 tokens; the model reads the last 16' generate --model lm --temperature 0 --max-tokens 4 --only-new \
  --prompt 'one two three four\none two three four\no'
expect_out 'ne t'

# Gaps.
expect 0 '' generate --model masked --prompt 'one two [MASK] four' --candidates 2
expect_match '^one two three four
  gap 1: three 0\.[0-9]{3}, [a-z⏎]+ 0\.[0-9]{3}$' "$out"
expect 0 '' generate --model masked --prompt 'one two [MASK] four' --candidates 1 --json
expect_match '^\{"prompt":"one two \[MASK\] four","text":"one two three four","gaps":\[\[\{"token":"three","probability":0\.[0-9]+\}\]\]\}$' "$out"
expect 0 '' generate --model masked --lang zh --prompt 'one two [MASK] four' --candidates 1
expect_match '空缺 1：three' "$out"
expect 1 'qkv: error: the prompt has no gap: write [MASK] where a token is missing' generate --model masked --prompt 'one two'
expect 0 '' generate --model spans --temperature 0 --prompt 'one two three four\none [MASK] four\none two three four'
expect_out 'one two three four
one two three four
one two three four'

# Scores, maps, leaks, facts.
expect 0 '' score --model lm text.txt
expect_match '^text.txt: perplexity 1\.[0-9]{4}, 0\.[0-9]{4} nats per token, 0\.[0-9]{4} bits per character \(1,140 characters, 1,140 tokens\)$' "$out"
expect 0 '' score --model lm text.txt --json
expect_match '^\{"file":"text.txt","objective":"causal","perplexity":1\.[0-9]+,"nats_per_token":0\.[0-9]+,"bits_per_character":0\.[0-9]+,"characters":1140,"tokens":1140,"scored_tokens":1139,"unknown_tokens":0\}$' "$out"
expect 0 '' score --model masked text.txt
expect_match 'of [0-9]+ hidden tokens' "$out"
expect 0 '' score --model spans text.txt
expect_match 'of [0-9]+ hidden tokens and marks' "$out"
"$QKV" score --model lm <text.txt | grep -q '^standard input: perplexity 1\.' || mismatch 'score of standard input'
expect 0 '' inspect --model lm 'one two' -o maps.svg
grep -q 'Head 2' maps.svg || mismatch 'maps.svg has no second head'
grep -q 'Encoder' maps.svg && mismatch 'a decoder has no encoder'
expect 0 '' inspect --model lm 'one two' --layer 2 --head 1 --json
expect_match '^\{"text":"one two","tokens":\["o","n","e","␣","t","w","o"\],"decoder":\[\[\[\[1\.0,0\.0,' "$out"
expect 0 '' inspect --model lm 'one two' --rollout --values -o maps.npz
expect 0 '' inspect --model spans 'one [MASK] three' -o maps.svg
expect 1 'qkv: error: --kind cross: this model has only decoder attention' inspect --model lm 'one two' --kind cross
expect 1 'qkv: error: the text has 17 tokens, but the model reads 16 at once' inspect --model lm 'one two three fou'
expect 2 'qkv: error: --patch and --resize are for models that classify images' inspect --model lm 'one two' --patch 1,1
expect 0 '' check --model lm
expect_match '^lm: texts of random tokens: 16' "$out"
expect_match 'change every later target token: ok' "$out"
expect_match 'control: 16 of 16 changes' "$out"
expect 0 '' check --model spans --data text.txt --count 4
expect_match '^spans: pieces of text.txt: 4' "$out"
expect 1 'qkv: error: this model fills gaps (model.objective is masked): each token sees all others, so there is nothing to prove' check --model masked
expect 0 '' info lm
expect_match '^lm: a run of qkv train
model       language model \(causal\) of 16 tokens: transformer, 2 layers, hidden 32, 2 heads, ffn 64, positions learned, norm pre, attention scaled-dot
data        text.txt
tokenizer   characters, vocabulary 12
training    10 of 10 epochs, loss' "$out"
expect 0 '' info lm --json
expect_match '"tokenizer": \{' "$out"

# What is refused.
: >empty.txt
expect 1 'qkv: error: empty.txt: is empty, expected text' train --text empty.txt -o none
expect 1 'qkv: error: cannot open short.txt: No such file or directory' train --text short.txt -o none
echo 'one two' >short.txt
expect 1 'qkv: error: short.txt: the training text has 7 tokens, but a block of model.context 16 needs 17
hint: use a longer text or a smaller --context' train --text short.txt --context 16 -o none
echo -n o >one.txt
expect 1 'qkv: error: one.txt: has 1 token; a validation text needs at least 2' train "${lm[@]}" --valid-text one.txt -o none
expect 1 'qkv: error: the validation part of text.txt: has 1 token; a validation text needs at least 2
hint: use a larger --valid-share, or 0 for none' train "${lm[@]}" --valid-share 0.0005 -o none
[[ ! -e none ]] || mismatch 'a refused training left a folder'
expect 1 'qkv: error: lm/config.yaml: model.context is 16, but 17 was requested
hint: --context 16 resumes it; --restart starts over; -o names another folder' train "${lm[@]/16/17}" -o lm
expect 1 'qkv: error: one.txt: has 1 token; a score needs at least 2' score --model lm one.txt
expect 2 'qkv: error: --model and --ref exclude each other: a language model scores texts on their own' score --model lm --ref text.txt text.txt
expect 2 'qkv: error: the option --model DIR is missing
hint: qkv train --preset lm makes one in runs/lm' generate --prompt one
for option in '--samples 2' '--stop x' --only-new '--rows 3' '--temperature 1' '--top-k 3' '--top-p 0.5' '--max-tokens 3' '--repetition-penalty 2'; do
  # shellcheck disable=SC2086
  expect 2 "qkv: error: ${option% *} does not apply to this model (model.objective is masked)" generate --model masked --prompt 'one [MASK]' $option
done
expect 2 'qkv: error: --candidates does not apply to this model (model.objective is causal)' generate --model lm --prompt one --candidates 3
expect 2 'qkv: error: --samples does not apply to this model (model.objective is spans)' generate --model spans --prompt one --samples 3
printf '0 1\tun\n1 0\tdeux\n2 1\ttrois\n0 2\tquatre\n' >pairs.tsv
run train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 8 --hidden 8 --epochs 1 --quiet -o translation
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
expect 1 'qkv: error: translation: holds a translation model, expected a language model
hint: qkv translate --model translation uses it' generate --model translation --prompt one
expect 1 'qkv: error: translation: holds a translation model, expected a language model
hint: qkv translate --model translation uses it' score --model translation text.txt
expect 1 'qkv: error: lm: holds a language model, expected a translation model
hint: qkv generate --model lm uses it' translate --model lm text.txt
expect 1 'qkv: error: lm: holds a language model, expected a translation model
hint: qkv generate --model lm uses it' align --model lm --pairs pairs.tsv

# A run that is killed resumes to the bit.
run train "${common[@]}" --epochs 4 --quiet -o whole
"$QKV" train "${common[@]}" --epochs 4 --quiet --checkpoint-seconds 0 -o killed & pid=$!
for _ in $(seq 100); do [[ -e killed/checkpoints/last.safetensors ]] && break; sleep 0.02; done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
run train "${common[@]}" --epochs 4 --quiet --checkpoint-seconds 0 -o killed
cmp whole/model.safetensors killed/model.safetensors || mismatch 'a killed run ends with other weights'
