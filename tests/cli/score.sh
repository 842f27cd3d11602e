# qkv score: sacreBLEU's lines, several references and systems, single sentences, JSON, and what it refuses.
printf 'The cat sleeps on the roof.\nIt costs 1,000 euros!\nNobody knew.\n' >hyp.txt
printf 'The cat sleeps on the warm roof.\nIt costs 1,000 euros.\nNobody knew it.\n' >ref.txt
printf 'A cat is sleeping on the roof.\nThat is 1,000 euros!\nNo one knew.' >ref2.txt
version=version:qkv-$("$QKV" --version | cut -d' ' -f2)
# What sacreBLEU 2.6.0 prints for these files, except for the version.
bleu="BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|$version = 58.1 93.3/75.0/55.6/50.0 (BP = 0.875 ratio = 0.882 hyp_len = 15 ref_len = 17)"

expect 0 '' score --ref ref.txt hyp.txt
expect_out "$bleu"
expect 0 '' score --ref ref.txt hyp.txt --metric bleu,chrf,d2l-bleu
expect_out "  $bleu
chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|$version = 80.4
                    d2l-bleu|nrefs:1|case:mixed|k:2|$version = 0.528"
expect 0 'qkv: note: both sides are compared in lower case' score --ref ref.txt --ref ref2.txt hyp.txt --lowercase --tokenize intl --smooth floor --width 3
expect_out "BLEU|nrefs:2|case:lc|eff:no|tok:intl|smooth:floor[0.10]|$version = 76.786 100.0/100.0/88.9/66.7 (BP = 0.875 ratio = 0.882 hyp_len = 15 ref_len = 17)"
expect 0 '' score --ref ref.txt --ref ref2.txt hyp.txt --metric chrf++
expect_out "chrF2++|nrefs:2|case:mixed|eff:yes|nc:6|nw:2|space:no|$version = 79.1"
expect 0 '' score --ref ref.txt hyp.txt --metric bleu,chrf --sentence --width 2
expect_out $'line\tBLEU\tchrF2\n1\t61.30\t74.18\n2\t66.87\t93.47\n3\t45.14\t74.82'
expect 0 '' score --ref ref.txt hyp.txt --sentence --json --metric d2l-bleu
expect_match '^\{"sentences":\[\{"line":1,"d2l-bleu":0\.[0-9]+\},\{"line":2,' "$out"

# Standard input, with and without the dash; Windows line ends.
expect_match '^BLEU.* = 58\.1 ' "$("$QKV" score --ref ref.txt <hyp.txt)"
expect_match '^BLEU.* = 58\.1 ' "$(sed 's/$/\r/' hyp.txt | "$QKV" score --ref ref.txt -)"

gzip -k hyp.txt ref.txt
expect 0 '' score --ref ref.txt.gz hyp.txt.gz
expect_out "$bleu"

# Intervals and paired tests.
expect 0 '' score --ref ref.txt hyp.txt --bootstrap --resamples 200
expect_match "^BLEU\|nrefs:1\|bs:200\|seed:12345\|case:.* = 58\.1 \(μ = [0-9]+\.[0-9] ± [0-9]+\.[0-9]\) 93\.3/" "$out"
first=$out
expect 0 '' score --ref ref.txt hyp.txt --bootstrap --resamples 200 --threads 1
expect_out "$first"
expect 0 '' score --ref ref.txt hyp.txt --bootstrap --resamples 200 --seed 7
expect_match 'seed:7\|' "$out"
expect 0 '' score --ref ref.txt hyp.txt ref2.txt --metric bleu,chrf
expect_match $'^system    BLEU  +chrF2\nhyp.txt   58\\.1 \\([0-9.]+ ± [0-9.]+\\)  +80\\.4 .*\nref2.txt  [0-9.]+ \\([0-9.]+ ± [0-9.]+, p = 0\\.[0-9]{4}( \\*)?\\)' "$out"
expect_match 'p: paired bootstrap test against hyp.txt; \* where p < 0.05$' "$out"
expect 0 '' score --ref ref.txt hyp.txt ref2.txt --test randomization --resamples 100 --lang zh
expect_match 'BLEU\|nrefs:1\|ar:100\|seed:12345\|.*p：与 hyp.txt 比较的成对近似随机化检验' "${out//$'\n'/ }"
expect 0 '' score --ref ref.txt hyp.txt ref2.txt --json
expect_match '^\{"references":1,"lines":3,"systems":\[\{"system":"hyp.txt","scores":\[\{"name":"BLEU","score":58\.1[0-9]+,"signature":"BLEU.*","verbose_score":"93.*"confidence_mean":.*"system":"ref2.txt".*"p_value":0\.' "$out"

# Translations without capitals lose points for case alone: a note says so.
tr A-Z a-z <hyp.txt >lower.txt
expect 0 'qkv: note: lower.txt: has no capitals, but the references do, and each one counts as an error; --lowercase ignores case' score --ref ref.txt lower.txt
expect 0 '' score --quiet --ref ref.txt lower.txt
expect 0 '' score --ref lower.txt lower.txt
expect 0 '' score --quiet --lowercase --ref ref.txt hyp.txt
lower=${out#* = }
expect 0 'qkv: note: both sides are compared in lower case' score --lowercase --ref ref.txt lower.txt
[[ ${out#* = } == "$lower" ]] || mismatch "--lowercase: $out, expected $lower"

# Text that is already tokenised.
for i in {1..100}; do echo "this is line $i ."; done >tokenised.txt
expect 0 'qkv: note: tokenised.txt: 100 lines end in " .", so the text seems to be tokenised; BLEU expects plain text' score --ref tokenised.txt tokenised.txt
expect_match ' = 100\.0 100\.0/100\.0/100\.0/100\.0 ' "$out"
expect 0 '' score --ref tokenised.txt tokenised.txt --tokenize none
expect 0 '' score --quiet --ref tokenised.txt tokenised.txt

# Refusals.
expect 2 'qkv: error: --ref FILE is missing
hint: qkv score --help shows an example' score hyp.txt
expect 2 'qkv: error: --metric: got "blue", expected a comma-separated list of bleu, chrf, chrf++, d2l-bleu
hint: did you mean "bleu"?' score --ref ref.txt hyp.txt --metric chrf,blue
expect 2 'qkv: error: --metric: "bleu" is given twice' score --ref ref.txt hyp.txt --metric bleu,bleu
expect 2 'qkv: error: --tokenize: got "13b", expected one of 13a, none, char, intl, zh
hint: did you mean "13a"?' score --ref ref.txt hyp.txt --tokenize 13b
expect 2 'qkv: error: --smooth: got "expo", expected one of exp, floor, add-k, none
hint: did you mean "exp"?' score --ref ref.txt hyp.txt --smooth expo
expect 2 'qkv: error: --smooth-value belongs to --smooth floor and add-k' score --ref ref.txt hyp.txt --smooth-value 1
expect 2 'qkv: error: d2l-bleu is defined for one reference, got 2' score --ref ref.txt --ref ref2.txt hyp.txt --metric d2l-bleu
expect 2 'qkv: error: standard input can be read once, but it is given 2 times' score --ref - -
expect 2 'qkv: error: --sentence scores one file, got 2' score --ref ref.txt hyp.txt ref2.txt --sentence
expect 2 'qkv: error: --sentence and --bootstrap exclude each other' score --ref ref.txt hyp.txt --sentence --bootstrap
expect 1 'qkv: error: cannot open gone.txt: No such file or directory' score --ref gone.txt hyp.txt
head -n 2 hyp.txt >short.txt
expect 1 'qkv: error: short.txt has 2 lines, but ref.txt has 3' score --ref ref.txt short.txt
expect 1 'qkv: error: hyp.txt has 3 lines, but short.txt has 2' score --ref ref.txt --ref short.txt hyp.txt
: >empty.txt
expect 1 'qkv: error: empty.txt: is empty, expected text' score --ref empty.txt hyp.txt
expect 1 'qkv: error: standard input: is empty, expected text' score --ref ref.txt
printf 'fine\nnot \xff fine\n' >bad.txt
expect_match '^qkv: error: standard input: line 2: not UTF-8: byte 0xff at offset 9$' "$("$QKV" score --ref ref.txt <bad.txt 2>&1)"
expect 1 'qkv: error: bad.txt: line 2: not UTF-8: byte 0xff at offset 9' score --ref ref.txt bad.txt
out=$({ printf '\xef\xbb\xbf'; cat ref.txt; } | "$QKV" score --ref ref.txt)
expect_match '^BLEU.* = 100\.0' "$out"
