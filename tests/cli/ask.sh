# qkv ask: the explorer's API without a server.
expect 0 '' ask cues '{"want": [0, 0], "things": [{"at": [0, 0]}, {"at": [1, 0]}], "temperature": 1}'
expect_match '^\{"weights":\[0\.731058[0-9]*,0\.268941[0-9]*\]' "$out"
expect_match '"command":"qkv ask cues ' "$out"
# The command in an answer gives that answer.
line=$(sed 's/.*"command":"qkv \(.*\)"}$/\1/; s/\\"/"/g' <<<"$out")
first=$out
expect 0 '' ask cues "$(sed "s/^ask cues '//; s/'\$//" <<<"$line")"
expect_out "$first"
"$QKV" ask attend - <<<'{"q": [[1, 0]], "k": [[1, 0], [0, 1]], "v": [[1], [2]], "score": "dot"}' >attend.json
expect_match '"name":"output","values":\[\[1\.26894' "$(cat attend.json)"
expect 0 '' ask models --models nowhere
expect_match '"models":\[\]' "$out"
expect 0 '' ask '/api/v1/picture?seed=3'
expect_match '"pixels":' "$out"

# Errors are lines.
expect 1 $'qkv: error: want is missing' ask cues '{}'
expect 1 $'qkv: error: the request is not JSON' ask cues '{"want": '
expect 1 $'qkv: error: there is no /api/v1/nothing\nhint: docs/api.md lists them' ask nothing
expect 1 $'qkv: error: GET is not for /api/v1/cues' ask cues
expect 2 $'qkv: error: one question at a time: 2 were given\nhint: put the JSON in single quotes' ask cues '{' '}'
head -c 2000000 /dev/zero | tr '\0' ' ' >large.json
"$QKV" ask cues - <large.json 2>error.txt && mismatch "2 MB are taken"
expect_match '^qkv: error: the question is longer than 1,?048,?576 bytes' "$(cat error.txt)"
