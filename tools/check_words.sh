#!/usr/bin/env bash
# check_words.sh [FOLDER]: refuses the odd turns of phrase in the glossary of CONTRIBUTING.md. Prints one line per
# finding, with what to say instead, and fails if there is one. Reads the tracked text files of the project, or all files
# in FOLDER, and finds phrases that span two lines too.
set -euo pipefail
unset CDPATH
cd "${1:-$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/..}"

# Not prose of ours: data, stored results, the built-in corpus, Chinese, the seeded faults, and the list below.
skipped='\.(po|json|jsonl|svg|npy|npz|safetensors)$|(^|/)LICENSE$|zh-CN|^tests/(golden|words)/|^src/qkv/data/en_fr_'
skipped+='|^tools/check_words\.sh$|^(build|\.git)/'
list() {
  # A tracked file may have been removed.
  if (( $# == 0 )) && git rev-parse 2>/dev/null; then git ls-files | xargs -d '\n' ls -d 2>/dev/null; return 0; fi
  find . -type f | sed 's|^\./||'
}
mapfile -t files < <(list "$@" | LC_ALL=C sort | grep -vE "$skipped")
(( ${#files[@]} )) || { echo "no files in $PWD"; exit 1; }

# name = pattern defines {name}; pattern => advice is an entry; in pattern after other => advice, the phrase is good
# English after the other pattern. A blank matches any gap between two words. Rather too narrow than too wide.
read -r -d '' words <<'WORDS' || true
# one a key, nats a token, twice a step
unit1 = batch|block|call|case|channel|character|class|column|coordinate|corpus|dimension|direction|element|entry|epoch
unit2 = experiment|feature|file|gradient|group|head|hypothesis|iteration|key|lab|label|lane|layer|line|link|map|model
unit3 = module|name|node|op|output|pair|panel|parameter|point|position|process|query|repetition|round|row|run|sample
unit4 = score|scorer|seed|segment|sentence|sequence|shape|shard|side|slot|source|step|subject|tape|target|task|tensor
unit5 = test|thread|tile|token|training|update|value|vector|weight|word
unit = (?:(?:visible |source |target )?(?:{unit1}|{unit2}|{unit3}|{unit4}|{unit5})\b)
many1 = allocations|bits|bytes|calls|columns|epochs|errors|flops?|floats|heads|keys|lines|links|maps|nats|numbers
many2 = operations|pairs|pieces|points|products|queries|rounds|rows|samples|sentences|steps|tokens|updates|values|words
many = (?:(?:{many1}|{many2}|weights|[GKM]i?B|[GM]?FLOPs?|ns|us|ms|node|function|product|width)\b)
end = (?=["'`]*\s*(?:[.,;:)\]!|]|"|$|(?:and|or|in|on|over|with|at|for|before|after|is|are)\b))
verb = may|can|must|could|should|will|would|has|have|had|is|was|sees?|needs?|gets?|takes?|gives?|uses?|reads?|holds?
which = (?i:\b(?:which|many|most|what|whose|every|each|gives?|the))
\b{many} an? {unit}(?! (?:{verb})\b) after {which}(?: source| target)? => say "per"
\b(?:tokens|sentences|steps|updates|words|rows|ops|pairs|lines|[KMG]i?B) a second\b => say "per second"
\b(?:or|and|for|is|are|has|have|gets?|takes?|with|only|but|just) one an? {unit} => say "one per"
\b(?:once|twice) an? {unit}{end} => say "once per", "twice per"
\b(?:a|one) (?:row|line|name|number|bias|scale|entry|test|seed|float|slot) an? {unit}{end} => say "one ... per"

# is no multiple
be = (?:is|are|was|were|be|been|being)
than1 = better|bigger|cheaper|clearer|closer|deeper|different|earlier|easier|faster|fewer|finer|greater|harder|higher
than2 = larger|later|less|longer|lower|more|narrower|newer|older|quicker|shorter|simpler|slower|smaller|tighter
than = (?:(?:{than1}|{than2}|stronger|wider|worse)\b)
there = (?:[Tt]here|[Hh]ere)(?: (?:will|can|may|must|might|would|should|need|has|have))?
\b{be} no (?!{than}|one\b|doubt\b)[a-z]+ after {there} => say "is not a", "are not" or "there is no"

# behind a word
put = puts?|stands?|stood|prints?|printed|writes?|written|wrote|placed|lies?|comes?|right|directly|space|floats|lanes
thing = last|first|end|equal|row|line|word|score|file|name|number|few
one = tab|row|line|space|word|number|sign|layer|comma|noun|blank
\b(?:{put}) behind\b(?! (?:our|your|its|their|the) back) => say "after"
\bbehind (?:each|every|anything|the (?:{thing})|an? (?:{one})|its (?:end|noun|number|name))\b => say "after"

# gone on with
here = (?:the|a|an|one|top|each|every|both|either|std\w*|standard|disk)\b
\b(?:go|goes|gone|went) on\b(?! {here}) after \bwhat => say "resumes" or "continues"
\b(?:go|goes|gone|going|went) (?:its|their) (?:own )?ways?\b => say "continues" or "is unaffected"

# above so many bytes
few = above|below|most|least|about|exactly|after|every|up to|first|last|than|only|as|at|with|of|over|to|just
\b(?:{few}|makes?) so many\b => name the number: "at most `limit` bytes", "every N steps"

# Of a row: ...
{begin}Of (?!course\b|these\b|those\b|all\b|\d)[a-z]+ => no fronted "of": begin with the subject
[;:] of (?:an?|the|another|several|each|every|one|two|some|other) \w+ => no fronted "of": say "for ..."

# poetry
\bmend(?:s|ed|ing)?\b => say "fixes" or "overwrites"
\brighted\b => say "fixed"
\b(?:{be}(?: not| never)? (?:heard|listened to)|not listened to)\b => say "has an effect", "is used" or "is ignored"
\bhears? of\b => say "is told about" or "depends on"
\blistens? to\b => say "attends to" or "uses"
\bnone of (?:its|our|their|\w+'s) business\b => say "ignored here"
\bminds? (?:neither|none|no|not)\b => say "ignores" or "is not affected by"
\bsp(?:eaks?|oke|eaking) of\b => say "mentions", "means" or "is about"
\b(?:told|tells?|telling) of\b => say "reports", "warns about" or "names"
\bsees? to it\b => say "makes sure", "ensures" or "takes care of"
\banswers? for (?:itself|themselves)\b => say "describes itself"
\b(?:says?|tells?) (?:itself|themselves) (?:what|which|how|where|whether|why)\b => say "describes its own ..."
\b{be} at home (?:in|here|there|on|with)\b => say "belongs", "is used" or "is allowed"
\b{be} at work\b => say "is running", "is in effect" or "another process is using"
\bheld against (?:the|that|this|its|their|them|what)\b => say "checked against" or "compared with"
\b(?:{be}|of|than) passed over\b|\b(?:it|book|reader) passes over (?:it|them)\b => say "skipped" or "ignored"
\bstand(?:s|ing)? (?:in(?! for\b)|beside|there|between|under|right|already)\b => say "is", "appears in" or "comes"

# fillers and archaisms
\b[Ww]hat(?:ever)?(?: else)? (?:stands?|lies?|lay|stood)\b(?! between) => say "what is", or name the thing
\b[Ww]hat is (?:no|{than}) (?:\w+ ){0,2}(?:is|are|gets?|has|have|becomes?)\b => name it: "longer lines are refused"
\b[Ww]hatever (?:the|its|their) (?:number of |two )?\w+(?=[.,;:)"]) => say "for any ..."
\ball that (?:an?|the|its?|is|was|they|we|you|needs?|has|must|can|came)\b => say "everything that"
\bone's own\b => say "your own" or "its own"
\b(?:by|for) (?:itself|themselves)\b after \bspeaks? => say "on its own", "separately" or "alone"
\bin turns\b => say "alternately", "in turn" or "interleaved"
\b(?:runs|folders|files|models|configurations) of before\b => say "older"
\b(?:[Tt]hus|[Hh]ence|[Ww]hence|[Tt]hereof|[Tt]herein|[Ww]hereby|[Hh]enceforth|[Ee]ver so)\b => say "so", or name it
\b(?:has|have|had) not an?\b|\bknows? not\b => say "does not have", "does not know"
WORDS

WORDS=$words LC_ALL=C perl - "${files[@]}" <<'PERL'
use strict;
use warnings;

# Blanks, or the end of a line with the marks of a comment, a list or a string literal around it.
my $gap = '(?:[ \t]+|[ \t]*\\\\?"?[ \t]*\n[ \t]*(?:///?<?|#+|\*)?[ \t]*"?)';
my %named = (begin => '^[ \t]*(?:(?:///?<?|#|\*|-|"|""")[ \t]*)?');
my @entries;
for (grep { !/^(#|$)/ } split /\n/, $ENV{WORDS}) {
  if (/^(.*?)(?: after (.*))? => (.*)$/) {
    my ($pattern, $before, $advice) = ($1, $2 // '(?!)', $3);
    for ($pattern, $before) {
      s/ /$gap/g;
      1 while s/\{([a-z]\w*)\}/$named{$1} \/\/ die "unknown {$1}\n"/e;
    }
    push @entries, [qr/$pattern/m, qr/$before$gap*\z/, $advice];
  } elsif (/^(\w+) = (.*)$/) {
    my ($name, $pattern) = ($1, $2);
    $pattern =~ s/ /$gap/g;
    $named{$name} = $pattern;
  } else {
    die "neither a name nor an entry: $_\n";
  }
}

my $found = 0;
for my $file (@ARGV) {
  open(my $in, '<', $file) or die "$file: $!\n";
  my $text = do { local $/; <$in> } // '';
  next if $text =~ /\0/;
  # The glossary quotes the words that are refused.
  $text =~ s{<!-- words: off -->.*?<!-- words: on -->}{$& =~ tr/\n//cdr}gse;
  my @findings;
  for (@entries) {
    my ($pattern, $before, $advice) = @$_;
    while ($text =~ /$pattern/g) {
      my ($begin, $end) = ($-[0], $+[0]);
      my $start = $begin < 60 ? 0 : $begin - 60;
      push @findings, [$begin, $end, $advice] unless substr($text, $start, $begin - $start) =~ $before;
    }
  }
  # Where findings overlap, the first is printed.
  my $done = 0;
  for (sort { $a->[0] <=> $b->[0] || $b->[1] <=> $a->[1] } @findings) {
    my ($begin, $end, $advice) = @$_;
    next if $begin < $done;
    $done = $end;
    $found = 1;
    my $line = 1 + (substr($text, 0, $begin) =~ tr/\n//);
    my $phrase = substr($text, $begin, $end - $begin) =~ s/(?:$gap)+/ /gr =~ s/^\W+//r;
    print "$file:$line: \"$phrase\": $advice\n";
  }
}
exit $found;
PERL
