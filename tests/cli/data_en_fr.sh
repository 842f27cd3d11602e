# qkv data en-fr: pairs, alignments, split, both directions, and what it refuses.
expect 0 '' data en-fr --size 3 --seed 1
three=$out
expect_match $'^[a-z .,?\']+\t[^\t]+ [.?]\n[^\t]+\t[^\t]+\n[^\t]+\t[^\t]+$' "$three"

expect 0 '' data en-fr --size 500 --seed 1 -o pairs.tsv --alignments pairs.align
expect_out ''
expect_match '^500$' "$(wc -l <pairs.tsv)"
expect_match '^500$' "$(wc -l <pairs.align)"
expect_match "^$three$" "$(head -n 3 pairs.tsv)"
expect_match '^$' "$(grep -vE '^[0-9]+[-p][0-9]+( [0-9]+[-p][0-9]+)*$' pairs.align)"
expect_match '^500$' "$(cut -f 1 pairs.tsv | sort -u | wc -l)"

expect 0 '' data en-fr --size 500 --seed 1 --threads 1
expect_match '^$' "$(diff <(printf '%s\n' "$out") pairs.tsv)"
expect 0 '' data en-fr --size 500 --seed 2
[[ $out != "$(cat pairs.tsv)" ]] || mismatch 'seeds 1 and 2 give the same corpus'
expect 0 '' data en-fr --size 500 --seed 1 --reverse
expect_match '^$' "$(diff <(printf '%s\n' "$out") <(awk -F '\t' '{ print $2 "\t" $1 }' pairs.tsv))"

expect 0 '' data en-fr --size 500 --seed 1 --split part
expect_out ''
expect_match '^500$' "$(cat part.train.tsv part.valid.tsv part.test.tsv | wc -l)"
expect_match '^$' "$(diff <(cat part.*.tsv | sort) <(sort pairs.tsv))"
for part in train valid test; do
  expect_match '^[1-9]' "$(wc -l <part.$part.tsv)"
  expect_match "^$(wc -l <part.$part.tsv)$" "$(wc -l <part.$part.align)"
done

expect 2 'qkv: error: --size: got "0", expected a whole number from 1 to 2000000' data en-fr --size 0
expect 2 'qkv: error: --size: got "3000000", expected a whole number from 1 to 2000000' data en-fr --size 3000000
expect 2 'qkv: error: --points belongs to nadaraya-watson, not to "en-fr"' data en-fr --points 3 -o pairs.tsv
expect 2 'qkv: error: --reverse belongs to en-fr, not to "waist"' data waist --reverse
expect 1 'qkv: error: cannot write gone/pairs.tsv: No such file or directory' data en-fr --size 3 -o gone/pairs.tsv
expect 0 '' data en-fr --help --lang en
expect_match 'French to English' "$out"
expect 0 '' data en-fr --help --lang zh
expect_match '法语到英语' "$out"
