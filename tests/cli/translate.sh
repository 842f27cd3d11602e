# qkv translate other than search: given translations, samples, and invalid options.
names=(nul un deux trois quatre cinq)
for a in 0 1 2 3 4 5; do for b in 0 1 2 3 4 5; do for c in 0 1 2 3 4 5; do
  (( (a + b + c) % 2 )) || printf '%s %s %s\t%s %s %s\n' $a $b $c ${names[c]} ${names[b]} ${names[a]}
done; done; done >pairs.tsv
e='qkv: error:'
run train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 24 --hidden 24 --rate 0.01 --batch-rows 16 --seed 3 --epochs 12 -o run -q
[[ $code == 0 ]] || mismatch "train: exit code $code: $err"
cut -f 1 pairs.tsv | head -n 20 >in.txt
cut -f 2 pairs.tsv | head -n 20 >ref.txt

# Given translations: the output of a search has the log p that the search reported.
run translate --model run --scores in.txt
printf '%s\n' "$out" >scored.txt
cut -f 1 scored.txt >said.txt
run translate --model run --force said.txt in.txt
[[ $code == 0 && $out == "$(cut -f 2 scored.txt)" ]] || mismatch "--force: other log-probabilities than the search's: $code $out"
expect_match '^perplexity [0-9]+\.[0-9]{4}: log p -[0-9]+\.[0-9]{4} over 80 tokens of 20 lines$' "$err"
# The same at any batch size and number of threads, and from standard input; the perplexity agrees with the lines.
all=$out
out=$("$QKV" translate --model run --force said.txt --rows 1 --threads 1 -q <in.txt 2>quiet.txt)
expect_out "$all"
expect_match '^perplexity [0-9.]+: log p -[0-9.]+ over 80 tokens of 20 lines$' "$(cat quiet.txt)"
run translate --model run --force ref.txt in.txt
sum=$(printf '%s\n' "$out" | awk '{ s += $1 } END { printf "%.3f", exp(-s / 80) }')
expect_match "^perplexity ${sum%?}" "$err"
printf '1 2 3\n' >one.txt; printf 'trois deux un\n' >one_ref.txt
run translate --model run --force one_ref.txt --json --attention -q one.txt
expect_match '^\{"line":1,"source":"1 2 3","reference":"trois deux un","source_tokens":\["1","2","3","<eos>"\],"tokens":\["trois","deux","un","<eos>"\],"log_probability":-[0-9.e-]+,"log_probabilities":\[-[0-9.e-]+(,-[0-9.e-]+){3}\],"attention":\[\[\[[^]]*\](,\[[^]]*\]){3}\]\]\}$' "$out"
run translate --model run --force one_ref.txt --json -q one.txt
[[ $out != *attention* ]] || mismatch "attention without --attention: $out"
# A line with an empty side gives an empty line and is not counted.
printf '1 2 3\n\n5 4 3\n' >gaps.txt; printf 'trois deux un\n\ntrois quatre sept\n' >gaps_ref.txt
run translate --model run --force gaps_ref.txt gaps.txt
expect_match $'^-[0-9.]+\n\n-[0-9.]+$' "$out"
expect_match $'^qkv: note: gaps_ref.txt: line 3: not in the vocabulary: sept\nperplexity [0-9.]+: log p -[0-9.]+ over 8 tokens of 2 lines\nqkv: note: 1 line not counted: one side is empty$' "$err"
expect 1 "$e in.txt has 20 lines, but one.txt has 1" translate --model run --force one.txt in.txt
expect 1 "$e cannot open no.txt: No such file or directory" translate --model run --force no.txt in.txt
expect 1 "$e cannot open no.txt: No such file or directory" translate --model run --force ref.txt no.txt
: >empty.txt
run translate --model run --force empty.txt in.txt
[[ $code == 1 && $err == "$e empty.txt: "* && $err != *$'\n'* ]] || mismatch "an empty reference: $code $err"
printf 'a\xff\n' >bytes.txt
run translate --model run --force bytes.txt one.txt
[[ $code == 1 && $err == "$e bytes.txt: "*UTF-8* ]] || mismatch "a reference that is not text: $code $err"
printf '%05000d\n' 0 | sed 's/0/nul /g' >long.txt
expect 1 "$e long.txt: line 1: has 5000 tokens; a sentence may have at most 4096" translate --model run --force long.txt one.txt
expect 2 "$e --force takes one FILE, got 2" translate --model run --force ref.txt in.txt in.txt
expect 2 "$e --force -: standard input cannot be both source and translation: give the source as FILE" translate --model run --force -
expect 2 "$e --force -: standard input cannot be both source and translation: give the source as FILE" translate --model run --force - -
expect 2 "$e --force and --beam exclude each other: with --force the translations are given" translate --model run --force ref.txt --beam 2 in.txt
expect 2 "$e --force and --sample exclude each other: with --force the translations are given" translate --model run --force ref.txt --sample in.txt

# Samples: the same for any batch size and number of threads, different for another seed; as many as requested.
run translate --model run --sample 3 --temperature 3 --seed 4 in.txt
[[ $code == 0 && $(printf '%s\n' "$out" | wc -l) == 60 ]] || mismatch "--sample 3 of 20 lines: $code $out"
expect_match $'^1 \\|\\|\\| [a-z ]* \\|\\|\\| -[0-9.]+ \\|\\|\\| -[0-9.]+\n1 \\|\\|\\| ' "$out"
all=$out
for how in '--rows 1 --threads 1' '--rows 7 --threads 2' '--rows 20 --threads 3'; do
  run translate --model run --sample 3 --temperature 3 --seed 4 $how in.txt
  expect_out "$all"
done
run translate --model run --sample 3 --temperature 3 --seed 5 in.txt
[[ $out != "$all" ]] || mismatch "another seed gives the same samples"
# Without a number, one sample per line, and the next argument is a file; line numbers of standard input continue over blocks.
run translate --model run --sample --temperature 3 --seed 4 in.txt
one=$(printf '%s\n' "$all" | awk 'NR % 3 == 1' | sed 's/^[0-9]* ||| //; s/ ||| .*//; s/^||| .*//')
expect_out "$one"
run translate --model run --temperature 3 --seed 4 --sample in.txt
expect_out "$one"
out=$({ head -n 9 in.txt; sleep 0.3; tail -n 11 in.txt; } | "$QKV" translate --model run --temperature 3 --seed 4 --sample=1)
expect_out "$one"
# With temperature 0, or with one token to choose from, it is greedy search.
run translate --model run --beam 1 in.txt
greedy=$out
for how in '--temperature 0' '--temperature 1e-9' '--top-k 1' '--top-p 1e-9'; do
  run translate --model run --sample $how --seed 7 in.txt
  expect_out "$greedy"
done
run translate --model run --sample 2 --json one.txt
expect_match '^\{"line":1,.*"hypotheses":\[\{"text":.*\},\{"text":.*\}\]\}$' "$out"

# An empty line has one translation, the empty one, in every output format; with several files, the output names the file of a line.
run translate --model run --beam 2 --nbest 2 gaps.txt
[[ $out == *$'\n2 |||  ||| 0.0000 ||| 0.0000\n3 ||| '* ]] || mismatch "--nbest of an empty line: $out"
run translate --model run --scores gaps.txt
[[ $out == *$'\n\t0.0000\t0.0000\n'* ]] || mismatch "--scores of an empty line: $out"
printf '1 2 3\nsept 2 3\n' >strange.txt
run translate --model run --json one.txt strange.txt
expect_match $'^\\{"file":"one.txt","line":1,.*\n\\{"file":"strange.txt","line":1,.*\n\\{"file":"strange.txt","line":2,' "$out"
expect_match '^qkv: note: strange.txt: line 2: not in the vocabulary: sept$' "$err"
cp one.txt $'odd\xff.txt'
run translate --model run --json one.txt $'odd\xff.txt'
[[ $code == 0 && $out == *$'\n{"file":"odd\xef\xbf\xbd.txt","line":1,'* ]] || mismatch "a file whose name is not UTF-8: $code $out $err"

run train --data pairs.tsv --tokenizer spaces --min-count 1 --embed 8 --hidden 8 --attention none --epochs 1 -o blind -q
expect 1 "$e blind: --attention: this model has no attention (model.attention is none)" translate --model blind --json --attention one.txt

# A sentence instead of a file.
expect 1 "$e cannot open 1 2 3: No such file or directory
hint: FILE is a text file; to translate a sentence: echo '1 2 3' | qkv translate --model run" translate --model run '1 2 3'
expect 1 "$e cannot open i'm: No such file or directory
hint: FILE is a text file; to translate a sentence: echo 'i'\\''m home .' | qkv translate --model run" translate --model run "i'm" home .
expect 1 "$e cannot open no.txt: No such file or directory
hint: FILE is a text file; to translate a sentence: echo '...' | qkv translate --model run" translate --model run no.txt
run translate --model run --lang zh '1 2 3'
expect_match "提示：FILE 是文本文件；要翻译一个句子：echo '1 2 3' \\| qkv translate --model run$" "$err"

# Bad values.
expect 2 "$e --beam: got \"0\", expected a whole number from 1 to 1000" translate --model run --beam 0 in.txt
expect 2 "$e --beam: got \"-1\", expected a whole number from 1 to 1000" translate --model run --beam -1 in.txt
expect 2 "$e --beam: got \"two\", expected a whole number from 1 to 1000" translate --model run --beam two in.txt
expect 2 "$e --nbest: got \"0\", expected a whole number from 1 to 1000" translate --model run --nbest 0 in.txt
expect 2 "$e --nbest 3 is more than --beam 2" translate --model run --beam 2 --nbest 3 in.txt
expect 2 "$e --max-length: got \"0\", expected a whole number from 1 to 100000" translate --model run --max-length 0 in.txt
expect 2 "$e --length-penalty: got \"-1\", expected a number from 0 to 10" translate --model run --length-penalty -1 in.txt
expect 2 "$e --length-penalty: got \"nan\", expected a number from 0 to 10" translate --model run --length-penalty nan in.txt
expect 2 "$e --rows: got \"0\", expected a whole number from 1 to 100000" translate --model run --rows 0 in.txt
expect 2 "$e --sample: got \"0\", expected a whole number from 1 to 10000" translate --model run --sample 0 in.txt
expect 2 "$e --sample: got \"-3\", expected a whole number from 1 to 10000" translate --model run --sample -3 in.txt
expect 2 "$e --sample: got \"many\", expected a whole number from 1 to 10000" translate --model run --sample=many in.txt
expect 2 "$e --temperature: got \"-1\", expected a number from 0 to 100" translate --model run --sample --temperature -1 in.txt
expect 2 "$e --temperature: got \"inf\", expected a number from 0 to 100" translate --model run --sample --temperature inf in.txt
expect 2 "$e --top-k: got \"0\", expected a whole number from 1 to 1000000000" translate --model run --sample --top-k 0 in.txt
expect 2 "$e --top-p: got \"0\", expected a number above 0 and at most 1" translate --model run --sample --top-p 0 in.txt
expect 2 "$e --top-p: got \"1.5\", expected a number from 0 to 1" translate --model run --sample --top-p 1.5 in.txt
expect 2 "$e --temperature needs --sample" translate --model run --temperature 1 in.txt
expect 2 "$e --top-k needs --sample" translate --model run --top-k 2 in.txt
expect 2 "$e --sample and --beam exclude each other: --sample draws translations, --beam and --nbest search for the best" translate --model run --sample --beam 5 in.txt
expect 2 "$e --sample and --nbest exclude each other: --sample draws translations, --beam and --nbest search for the best" translate --model run --sample --nbest 2 in.txt
expect 0 '' translate --model run --sample --beam 1 --temperature 0 in.txt
sed 's/beam: 1/beam: 0/' run/config.yaml >config.yaml; cp -r run zero; cp config.yaml zero/config.yaml
line=$(grep -n 'beam: 0' zero/config.yaml | cut -d : -f 1)
expect 1 "$e zero/config.yaml:$line: decoding.beam: got \"0\", expected a whole number from 1 to 1000" translate --model zero in.txt
expect 2 "$e --beam: got \"0\", expected a whole number from 1 to 1000" train --data pairs.tsv --beam 0 -o x
run translate --help
expect_match '--sample \[N\]' "$out"
run translate --help --lang zh
expect_match '--top-p P +采样时' "$out"

# Text as people type it: the words of a lower-cased corpus are found, and the translation is written like the sentence. Text in the
# form of the corpus is unchanged.
for s in the:le a:un; do for n in cat:chat dog:chien; do for v in sleeps:dort eats:mange; do for m in . ,; do
  printf '%s %s %s %s\t%s %s %s %s\n' ${s%:*} ${n%:*} ${v%:*} $m ${s#*:} ${n#*:} ${v#*:} $m
done; done; done; done >typed.tsv
run train --data typed.tsv --tokenizer spaces --min-count 1 --embed 16 --hidden 16 --rate 0.02 --batch-rows 4 --epochs 30 --seed 1 -o typed -q
for sentence in 'the dog eats .' 'a cat sleeps .' 'the cat sleeps ,'; do
  printf '%s\n' "$sentence" >corpus.txt
  typed=${sentence^}; typed=${typed% *}${sentence##* }
  printf '%s\n%s\n%s\n' "$typed" "${typed^^}" "$sentence" >typed.txt
  run translate --model typed corpus.txt
  plain=$out
  [[ $plain =~ ^[a-z]+' '[a-z]+' '[a-z]+' '[.,]$ ]] || mismatch "the model has not learned its sentences: $plain"
  natural=${plain^}; natural=${natural% *}${plain##* }
  expect 0 '' translate --model typed typed.txt
  expect_out "$natural
$natural
$plain"
  run translate --model typed --json typed.txt
  expect_match '"text":"'"$natural"'"' "$out"
  # Every command that reads text finds the same words.
  printf '%s\n%s\n' "$natural" "$plain" >refs.txt; printf '%s\n%s\n' "$typed" "$sentence" >both.txt
  run translate --model typed --force refs.txt both.txt
  [[ -n $out && ${out%$'\n'*} == "${out#*$'\n'}" ]] || mismatch "--force: typed text has another log p: $out"
done
expect 0 '' inspect --model typed 'The DOG eats.' --json
expect_match '"source_tokens":\["the","dog","eats",".","<eos>"\]' "$out"
printf 'The zebra sleeps.\n' >zebra.txt
run translate --model typed zebra.txt
expect_match '^qkv: note: zebra.txt: line 1: not in the vocabulary: zebra$' "$err"

# Subwords: text in another Unicode form, and all kinds of blanks.
sed 's/dort/a \xc3\xa9t\xc3\xa9/g' typed.tsv >accents.tsv
run train --data accents.tsv --tokenizer bpe --vocabulary 32 --reverse true --embed 8 --hidden 8 --epochs 1 -o pieces
[[ $code == 0 && $err != *lower-cased* ]] || mismatch "subwords: $code $err"
[[ $(cat pieces/tokenizer.source.txt) == 'subwords cased nfkc' ]] || mismatch "tokenizer: $(cat pieces/tokenizer.source.txt)"
printf 'le chat a \xc3\xa9t\xc3\xa9 .\n' >plain.txt
run translate --model pieces plain.txt
plain=$out
[[ $err != *vocabulary* && -n $out ]] || mismatch "a sentence of the corpus: $err $out"
printf 'le\tchat a e\xcc\x81te\xcc\x81 .\nle\xc2\xa0chat\xe2\x80\x83a \xc3\xa9t\xc3\xa9 .\n\xef\xbd\x8c\xef\xbd\x85 chat a \xc3\xa9t\xc3\xa9 .\n\t\n\xe2\x80\x83\n' >forms.txt
run translate --model pieces forms.txt
[[ $err != *vocabulary* ]] || mismatch "other forms of the same text: $err"
expect_out "$plain
$plain
$plain"
run translate --model pieces --json forms.txt
[[ $(grep -c '"hypotheses":\[\]' <<<"$out") == 2 ]] || mismatch "lines of blanks alone are translated: $out"
printf 'le\tW chat\n' >unknown.txt
run translate --model pieces unknown.txt
expect_match $'^qkv: note: unknown.txt: line 1: not in the vocabulary: W\n' "$err"
run train --data accents.tsv --tokenizer bpe --vocabulary 30 --lowercase true --normalize none --embed 8 --hidden 8 --epochs 1 -o lower
expect_match 'note: bpe of lower-cased text: translations will have no capitals' "$err"
[[ $(cat lower/tokenizer.source.txt) == 'subwords lower' ]] || mismatch "tokenizer: $(cat lower/tokenizer.source.txt)"
run info lower
expect_match 'tokenizer   bpe of lower-cased text, vocabularies' "$out"
run info pieces
expect_match 'tokenizer   bpe, nfkc, vocabularies' "$out"
