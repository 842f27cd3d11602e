# qkv ask: the explorer's API without a server.
expect 0 '' ask cues '{"want": [0, 0], "things": [{"at": [0, 0]}, {"at": [1, 0]}], "temperature": 1}'
expect_match '^\{"weights":\[0\.731058[0-9]*,0\.268941[0-9]*\]' "$out"

# The command in an answer gives that answer, whatever is quoted in it.
command_of() { sed 's/.*"command":"\(\([^"\\]\|\\.\)*\)".*/\1/; s/\\\(["\\]\)/\1/g' <<<"$1"; }
qkv() { "$QKV" "$@"; }
expect_match "^qkv ask cues '" "$(command_of "$out")"
expect_match '^same$' "$([[ $(eval "$(command_of "$out")") == "$out" ]] && echo same)"
expect 0 '' ask cues "{\"want\": [0, 0], \"things\": [{\"name\": \"it's \\\"here\\\"\", \"at\": [0, 1]}], \"view\": \"v\", \"lang\": \"zh\"}"
again=$(eval "$(command_of "$out")")
expect_match '"weights":\[1\.0\]' "$again"
expect_match '^same$' "$([[ $again == "$out" ]] && echo same)"

# From standard input, with a query, and what is there without fields.
"$QKV" ask attend - <<<'{"q": [[1, 0]], "k": [[1, 0], [0, 1]], "v": [[1], [2]], "score": "dot"}' >attend.json
expect_match '"name":"output","values":\[\[1\.26894' "$(cat attend.json)"
expect 0 '' ask models
expect_match '^\{"models":\[\],"background":null\}$' "$out"
expect 0 '' ask '/api/v1/picture?seed=3'
expect_match '"pixels":' "$out"
expect 0 '' ask /health
expect_match '"status":"ok"' "$out"

# A model by its id or by the name of its folder; a command names the folder of models.
"$QKV" -q train --preset transformer --corpus-size 300 --epochs 1 --warmup 0 --hidden 16 --ffn 16 -o runs/small >/dev/null 2>&1
expect 0 '' ask translate '{"model": "m1", "text": "the cat sleeps .", "edits": [{"name": "cross", "layer": 1, "do": "off"}]}'
by_id=$out
expect_match "^qkv ask translate --models runs '" "$(command_of "$out")"
expect_match '^same$' "$([[ $(eval "$(command_of "$out")") == "$by_id" ]] && echo same)"
expect 1 $'qkv: error: there is no model large\nhint: GET /api/v1/models lists the models' ask translate '{"model": "large", "text": "a"}'

# Errors are lines.
expect 1 $'qkv: error: want is missing' ask cues '{}'
expect 1 $'qkv: error: the request is not JSON' ask cues '{"want": '
expect 1 $'qkv: error: the request must be a JSON object' ask cues '[1]'
expect 1 $'qkv: error: want: expected a number, got "x"' ask cues '{"want": ["x", 1], "things": []}'
expect 1 $'qkv: error: there is no /api/v1/nothing\nhint: docs/api.md lists them' ask nothing
expect 1 $'qkv: error: GET is not for /api/v1/cues\nhint: give its fields as JSON, or - for standard input' ask cues
expect 1 $'qkv: error: POST is not for /api/v1/models\nhint: it takes no fields: leave the JSON out' ask models '{}'
expect 1 $'qkv: error: there is no language model\nhint: qkv train --preset lm makes one' ask /v1/completions '{}'
expect 1 $'qkv: error: nowhere: no such folder' ask models --models nowhere
expect 1 $'qkv：错误：缺少 want' ask cues '{}' --lang zh
expect 2 $'qkv: error: one question at a time: 2 were given\nhint: put the JSON in single quotes' ask cues '{' '}'
head -c 2000000 /dev/zero | tr '\0' ' ' >large.json
"$QKV" ask cues - <large.json 2>error.txt && mismatch "2 MB are taken"
expect_match '^qkv: error: the question is longer than 1,?048,?576 bytes' "$(cat error.txt)"
