# qkv data: vocabularies, subword models, splits, the book's file.
e='qkv: error:'
printf 'Go.\tVa !\nGo on.\tContinue !\nI go.\tJe vais.\nGo on.\tPoursuis.\n' >p.tsv
expect 0 '' data vocab p.tsv --column 1
expect_out '<unk>
<pad>
<bos>
<eos>
go
.
on'
expect 0 '' data vocab p.tsv --column 2 --min-count 1 -o vocab.fr.txt
expect_out 'vocab.fr.txt: 11 tokens; 0.0 % of 9 words are unknown'
[[ $(sed -n 5p vocab.fr.txt) == '!' ]] || mismatch "vocab.fr.txt has $(cat vocab.fr.txt)"
expect 0 '' --quiet data vocab p.tsv --column 1 --rule words -o v.txt
expect_out ''
expect 0 '' --lang zh data vocab p.tsv --column 1 --rule spaces -o v.txt
expect_out 'v.txt：6 个词元；7 个词中 42.9 % 不在词表内'

for i in $(seq 40); do echo "the walker $i walks and the talker talks at home"; echo "a worker works $i times"; done >t.txt
gzip -k t.txt
expect 0 '' data subwords t.txt --size 60 -o a.model
expect_match '^a.model: 60 pieces, [0-9.]+ per word$' "$out"
expect 0 '' data subwords t.txt.gz --size 60 -o b.model
cmp -s a.model b.model || mismatch 'the same text made two different models'
expect 0 '' data subwords t.txt --size 38 --model unigram --lowercase -o u.model
run data subwords t.txt --size 5000 -o c.model
most=${err##* }
expect 1 "$e [subwords] 5000 pieces were requested, but the text gives at most $most"$'\n'"hint: --size $most" data subwords t.txt --size 5000 -o c.model
[[ $code == 1 && ! -e c.model ]] || mismatch 'a failed training left a file or a wrong exit code'
expect 0 '' data subwords t.txt --size "$most" -o c.model
expect_match "^c.model: $most pieces" "$out"

for i in $(seq 100); do echo "Source $((i % 50))	target $i"; done >many.tsv
seq 100 >many.align
expect 0 '' --seed 3 data split many.tsv --validation 10 --test 5 --alignments many.align -o parts
expect_out 'parts: train 84, validation 10, test 6 pairs; no source sentence is in two parts'
sort -u <(cut -f1 parts/train.tsv | sort -u) <(cut -f1 parts/test.tsv | sort -u) <(cut -f1 parts/validation.tsv | sort -u) | wc -l >n
for a in train test validation; do cut -f1 parts/$a.tsv | sort -u; done | sort | uniq -d >leak
[[ ! -s leak && $(cat n) == 50 ]] || mismatch "a source is in two parts: $(cat leak)"
paste parts/test.tsv parts/test.align | awk '{ if ($4 != $NF) exit 1 }' || mismatch 'alignments went astray'
expect 0 '' --seed 3 data split many.tsv --validation 10 --test 5 -o again
cmp -s parts/test.tsv again/test.tsv || mismatch 'one seed made two splits'
cut -f1 many.tsv >m.de && cut -f2 many.tsv >m.en
cp -r parts less
expect 0 '' --seed 4 data split many.tsv --validation 0 --test 5 --alignments many.align -o less
[[ -e less/test.tsv && ! -e less/validation.tsv && ! -e less/validation.align ]] || mismatch "a part of an earlier split stayed: $(ls less)"
expect 0 '' --seed 3 data split m.de m.en --validation 10 --test 0 -o two
[[ $(ls two | tr '\n' ' ') == 'train.de train.en validation.de validation.en ' ]] || mismatch "two has $(ls two)"

# Input files are never overwritten.
for name in train validation test; do
  cp many.tsv $name.tsv
  expect 2 "$e ./$name.tsv: is an input of this command and cannot also be its output" data split $name.tsv --validation 0 --test 0 -o .
  cmp -s many.tsv $name.tsv || mismatch "data split changed its input"
done
rm train.tsv validation.tsv test.tsv
cp many.tsv own.tsv
expect 2 "$e own.tsv: is an input of this command and cannot also be its output" data vocab own.tsv -o own.tsv
cmp -s many.tsv own.tsv || mismatch "data vocab changed its input"

# Errors give the place.
head -3 m.en >short.en
expect 1 "$e m.de has 100 lines, short.en has 3: line-aligned files need the same number of lines" data split m.de short.en -o x
expect 1 "$e many.align has 100 lines, p.tsv has 4 pairs" data split p.tsv --alignments many.align -o x
expect 1 "$e [split] 4 pairs of 3 sources are too few for 1000 validation pairs, 1000 test pairs and a training set" data split p.tsv -o x
printf 'a\tb\nalone\n' >one.tsv
expect 1 "$e one.tsv: line 2: has 1 column, expected two separated by a tab" data split one.tsv -o x
printf 'ok\nb\xe9te\n' >latin.txt
expect 1 "$e latin.txt: line 2: not UTF-8: byte 0xe9 at offset 4" data vocab latin.txt
: >empty.txt
expect 1 "$e empty.txt: is empty, expected text" data vocab empty.txt
printf '\n \n' >blank.txt
expect 1 "$e blank.txt: has no words" data vocab blank.txt
expect 1 "$e [subwords] there is no text to train on" data subwords blank.txt -o x.model
expect 1 "$e cannot open none.txt: No such file or directory" data vocab none.txt
[[ ! -e x && ! -e x.model ]] || mismatch 'a refused command left a file'
expect 2 "$e the argument FILE is missing"$'\n'"hint: qkv data vocab --help explains it" data vocab
expect 2 "$e the option --output is missing" data subwords t.txt
expect 2 "$e unexpected argument \"c\"" data split a b c -o x
expect 2 "$e unexpected argument \"a\"" data waist a
expect 2 "$e --size belongs to en-fr, subwords, not to \"waist\"" data waist --size 100
expect 2 "$e --column belongs to vocab, subwords, not to \"split\"" data split p.tsv --column 1 -o x
run data vocabs
expect_match "^$e unknown data set \"vocabs\": expected one of en-fr, nadaraya-watson, waist, measures, .*.hint: did you mean \"vocab\"\?$" "$err"
[[ $code == 2 ]] || mismatch "exit code $code, expected 2"

# The book's file is recognised by its digest, from any source.
hint='hint: download http://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip on a machine with network access, then run: qkv data fra-eng --from fra-eng.zip -o fra.txt'
printf 'PKabc' >fake.zip
expect 1 "$e fake.zip: its SHA-1 is $(sha1sum fake.zip | cut -d' ' -f1), expected 94646ad1522d915e7b0f9296181140edcf86a4f5
$hint" data fra-eng --from fake.zip
printf 'abc\td\n' >mine.txt
expect 1 "$e mine.txt: neither the book's archive nor its text: its SHA-1 is $(sha1sum mine.txt | cut -d' ' -f1), expected 94646ad1522d915e7b0f9296181140edcf86a4f5 or c43f99dce27311d3afd4d3e0716848194cfcc103
hint: your own pairs need no preparation: qkv train --data FILE" data fra-eng --from mine.txt
book=${QKV_TEST_DATA:-$(dirname "$test_file")/../../../shared/data}/fra-eng/fra.txt
if [[ -e $book ]]; then
  expect 0 '' data fra-eng --from "$book" -o book.txt
  cmp "$book" book.txt || mismatch 'the text itself, taken as it is, differs'
  expect 0 '' data fra-eng --from book.txt -o book.txt
  cmp "$book" book.txt || mismatch 'the text was written over itself'
  rm book.txt
fi
# Exit codes of curl, and their meaning.
mkdir bin; printf '#!/bin/sh\nexit $CURL_CODE\n' >bin/curl; chmod +x bin/curl
for case in '6:host not found; is there a network connection?' '7:host not reachable; is there a network connection?' '28:the host does not answer' \
  '22:the server refused the request or does not have the file' '63:the file has more than 268,435,456 bytes' '99:curl ended with exit code 99'; do
  PATH=$PWD/bin:$PATH CURL_CODE=${case%%:*} expect 1 "$e cannot fetch http://d2l-data.s3-accelerate.amazonaws.com/fra-eng.zip: ${case#*:}
$hint" data fra-eng -o fetched.txt
done
expect 1 "$e cannot open none.zip: No such file or directory" data fra-eng --from none.zip
run data fra-eng --from http://127.0.0.1:9/fra-eng.zip
expect_match "^$e cannot fetch http://127.0.0.1:9/fra-eng.zip: " "$err"
[[ $code == 1 && $err == *"$hint" ]] || mismatch "exit code $code: $err"
[[ ! -e fra.txt ]] || mismatch 'a failed fetch left fra.txt'

# Arrays to try attend on: "it" finds the cat with either score, and does not see later words.
expect 0 '' data attention -o arrays
expect_out 'arrays: q.npy (6, 5), k.npy (6, 5), v.npy (6, 3) for the words "the cat slept because it purred"; additive.safetensors'
files=(--query arrays/q.npy --key arrays/k.npy --value arrays/v.npy)
for score in '--score scaled-dot' '--score additive --params arrays/additive.safetensors'; do
  expect 0 '' attend "${files[@]}" $score --causal --json
  expect_match '"output":\[' "$out"
  python=$(printf '%s' "$out" | sed 's/.*"output":\[\[//; s/\]\].*//; s/\],\[/\n/g' | sed -n 5p)   # "it"
  awk -F, '{ exit !($1 > 0.7 && $1 > 5 * $2) }' <<<"$python" || mismatch "$score: \"it\" does not find the cat: $python"
done
expect 2 "$e --size belongs to en-fr, subwords, not to \"attention\"" data attention --size 3
# The points are those of lab 10.2 at the same seed: its text gives the left-out loss of width 1.
expect 0 '' data nadaraya-watson
points=$out
expect 0 '' data nadaraya-watson --seed 0
expect_out "$points"
