// Sentences of two clauses, and how often each construction is drawn.
#include "qkv/data/en_fr_grammar.h"

#include <algorithm>

#include "qkv/data/en_fr_speaker.h"

namespace qkv::en_fr {
namespace {

NounPhrase pronoun_for(const NounPhrase& phrase) {
  NounPhrase pronoun;
  pronoun.agreement = phrase.agreement;
  return pronoun;
}

// French uses "elles" if all are women, and the corpus has only one "they".
bool has_pronoun(const NounPhrase& phrase) {
  return phrase.classes() & person && !(phrase.agreement.plural && phrase.agreement.gender == Gender::feminine);
}

}  // namespace

bool Speaker::there_is() {
  const bool lying = dice_.percent(50);
  NounPhrase thing = choose_.noun(lying ? portable | pet : person | animal);
  if (thing.noun->classes & family) return false;
  const bool negated = dice_.percent(20), asks = !negated && dice_.percent(20), plural = thing.agreement.plural;
  thing.determiner = plural ? Determiner::some : Determiner::a;
  if (plural && !negated && dice_.percent(60))
    thing.determiner =
        dice_.pick({Determiner::two, Determiner::three, Determiner::four, Determiner::five, Determiner::six});
  thing.negated = negated;
  choose_.describe(thing, 30);
  Place where = lying ? choose_.position() : choose_.somewhere(place | shop | market);
  if (where.head() == thing.head()) return false;
  int be = asks ? sentence_.en(plural ? "are" : "is") : -1;
  const int there = sentence_.en("there");
  if (!asks) be = sentence_.en(plural ? "are" : "is");
  const int no = negated ? sentence_.en("not") : -1;
  thing.write_en(sentence_);
  where.write_en(sentence_);
  sentence_.relate("there", thing.head(), where.head());
  if (asks) {
    sentence_.fr("est-ce", {be});
    sentence_.fr("que", {be});
  }
  sentence_.fr("il", {there});
  if (negated) sentence_.fr("ne", {no});
  sentence_.fr("y", {there});
  sentence_.fr("a", {be});
  if (negated) sentence_.fr("pas", {no});
  thing.write_fr(sentence_);
  where.write_fr(sentence_);
  mark(asks ? "?" : ".");
  return true;
}

// The boy who is eating an apple is tall.
bool Speaker::relative_subject() {
  NounPhrase subject = choose_.definite(person);
  if (subject.noun->classes & family) return false;
  if (subject.determiner != Determiner::this_one) subject.determiner = Determiner::the;
  subject.name = nullptr;
  Clause clause = draw_clause(subject, true);
  Copula copula = draw_copula(subject);
  if (!copula.adjective || copula.than) return false;
  clause.writes_subject = copula.writes_subject = false;
  subject.write_en(sentence_);
  const int who = sentence_.en("who");
  clause.write_en(sentence_);
  copula.write_en(sentence_);
  subject.write_fr(sentence_);
  sentence_.fr("qui", {who});
  clause.write_fr(sentence_);
  copula.write_fr(sentence_);
  mark(".");
  return true;
}

// The letter that she wrote is sad. I like the dress that Marie bought.
bool Speaker::relative_object() {
  Clause inner;
  inner.subject = choose_.subject(person);
  inner.verb = &draw_verb([](const Verb& one) {
    return one.frame == Frame::object && one.uses & past && !(one.objects & (person | ride)) && one.base != "open" &&
           one.base != "close";
  });
  inner.tense = inner.verb->uses & present && dice_.percent(35) ? Tense::present : Tense::past;
  if (dice_.percent(15)) inner.polarity = Polarity::negative;
  NounPhrase thing = choose_.noun(inner.verb->objects);
  const bool is_mass = thing.noun->count == Count::mass;
  if (is_mass && inner.verb->base != "drink") return false;  // countable nouns show more agreement
  if (thing.noun->count == Count::both && dice_.percent(25)) {
    thing.agreement.person = 4;
    thing.agreement.plural = true;
  }
  if (!choose_.suits(inner, *thing.noun)) return false;
  choose_.describe(thing, 15);
  inner.gap = thing.agreement;
  const auto write_thing_en = [&] {
    thing.write_en(sentence_);
    const int that = sentence_.en("that");
    inner.write_en(sentence_);
    sentence_.relate("object", inner.verb->base, thing.head());
    return that;
  };
  const auto write_thing_fr = [&](int that) {
    thing.write_fr(sentence_);
    sentence_.fr("que", {that});
    inner.write_fr(sentence_);
  };
  if (dice_.percent(50)) {
    Copula copula;
    copula.subject = thing;
    copula.adjective = choose_.predicate(thing);
    if (!copula.adjective) return false;
    copula.negated = dice_.percent(20);
    copula.writes_subject = false;
    const int that = write_thing_en();
    copula.write_en(sentence_);
    write_thing_fr(that);
    copula.write_fr(sentence_);
  } else {
    Clause outer;
    outer.subject = choose_.subject(person);
    outer.verb = &verb(dice_.pick({Word("like"), Word("look"), Word("buy"), Word("see")}));
    if (outer.verb == inner.verb || !(outer.verb->objects & thing.noun->classes) || !choose_.suits(outer, *thing.noun))
      return false;
    outer.tense = outer.verb->uses & present ? Tense::present : Tense::past;
    if (dice_.percent(20)) outer.polarity = Polarity::negative;
    outer.write_en(sentence_);
    sentence_.relate("object", outer.verb->base, thing.head());
    const int that = write_thing_en();
    outer.write_fr(sentence_);
    write_thing_fr(that);
  }
  mark(".");
  return true;
}

void Speaker::join(Word en, Word fr, Word fr_second) {
  const int word = sentence_.en(en);
  sentence_.fr(fr, {word});
  if (!fr_second.empty()) sentence_.fr(fr_second, {word});
}

// and: two clauses in the same tense. but: the same verb or adjective, once with and once without "not".
bool Speaker::compound() {
  const bool contrast = dice_.percent(50);
  const NounPhrase first = choose_.subject(person), second = choose_.subject(person);
  const bool same_pronoun =
      second.head().empty() && (first.agreement.person == second.agreement.person || second.agreement.person == 2);
  if (same_pronoun || (!first.head().empty() && first.head() == second.head())) return false;
  if (dice_.percent(30)) {
    Copula one = draw_copula(first), other = draw_copula(second);
    if (contrast) {
      other.adjective = one.adjective;
      other.state_en = one.state_en;
      other.state_fr = one.state_fr;
      other.negated = !one.negated;
      one.very = other.very = false;
      const bool handsome = one.adjective && (one.adjective->en == "handsome" || one.adjective->en == "beautiful");
      if (handsome || (one.adjective && !(one.adjective->classes & second.classes()))) return false;
    }
    write(one);
    join(contrast ? "but" : "and", contrast ? "mais" : "et");
    write(other);
  } else {
    Clause one = draw_clause(first, true);
    if (one.tense == Tense::perfect) return false;
    write(one);
    join(contrast ? "but" : "and", contrast ? "mais" : "et");
    const Verb& next = contrast ? *one.verb : draw_verb([&](const Verb& verb) {
      return verb.subjects & person && verb.frame != Frame::receiver &&
             verb.uses & (one.tense == Tense::present ? present : past);
    });
    const Tense tense = contrast || one.tense == Tense::present ? one.tense : Tense::past;
    if (!contrast && tense != one.tense) return false;
    const bool negative = contrast ? one.polarity == Polarity::affirmative : dice_.percent(20);
    Clause other = draw_clause(second, next, tense, negative ? Polarity::negative : Polarity::affirmative);
    write(other);
  }
  mark(".");
  return true;
}

// Why people do things: they eat because they are hungry, they stay in because of the weather.
bool Speaker::reason() {
  struct Reason {
    Word verb, en, fr;  // a state if fr is set, else an adjective; without en: the weather
    Weather weather = Weather::cold;
  };
  constexpr Reason reasons[] = {{"eat", "hungry", "faim"},
                                {"drink", "thirsty", "soif"},
                                {"sleep", "tired", ""},
                                {"rest", "tired", ""},
                                {"sleep", "sleepy", "sommeil"},
                                {"sing", "happy", ""},
                                {"stay", "tired", ""},
                                {"stay", "", ""},
                                {"come", "", ""},
                                {"wear", "", ""},
                                {"close", "", ""},
                                {"open", "", "", Weather::hot}};
  const Reason& chosen = reasons[dice_.below(std::size(reasons))];
  Clause act;
  act.subject = choose_.subject(person);
  act.verb = &verb(chosen.verb);
  if (act.verb->uses & modal && dice_.percent(35)) act.tense = dice_.pick({Tense::want, Tense::future});
  complete(act, false);
  const bool box = act.object && act.object->noun && act.object->noun->classes & container;
  const bool light = chosen.verb == "wear" && act.object->noun->en != "coat" && act.object->noun->en != "hat";
  if (box || light) return false;
  if (chosen.verb == "stay") {
    act.place.emplace();  // at home
    if (dice_.percent(50)) act.place->noun = &noun("house");
  }
  write(act);
  join("because", "parce", "que");
  if (chosen.en.empty()) {
    weather(chosen.weather);
  } else {
    if (!has_pronoun(act.subject)) return false;
    Copula state;
    state.subject = pronoun_for(act.subject);
    if (!chosen.fr.empty()) {
      state.state_en = chosen.en;
      state.state_fr = chosen.fr;
    } else {
      state.adjective = &adjective(chosen.en);
    }
    state.very = dice_.percent(25);
    write(state);
  }
  mark(".");
  return true;
}

// Affirmative only: "je ne pense pas que" requires the subjunctive, which the corpus does not have.
bool Speaker::thinking() {
  NounPhrase thinker = choose_.subject(person), other = choose_.subject(person);
  const bool same_pronoun = thinker.head().empty() && thinker.agreement.person == other.agreement.person;
  if (same_pronoun || (!thinker.head().empty() && thinker.head() == other.head())) return false;
  thinker.write_en(sentence_);
  const int think = sentence_.en(thinker.agreement.person == 2 ? "thinks" : "think"), that = sentence_.en("that");
  thinker.write_fr(sentence_);
  sentence_.fr(penser_forms[thinker.agreement.person], {think});
  sentence_.fr("que", {that});
  if (!thinker.head().empty()) sentence_.relate("subject", thinker.head(), "think");
  if (dice_.percent(50)) {
    Copula copula = draw_copula(other);
    write(copula);
  } else {
    Clause clause = draw_clause(other, true);
    write(clause);
  }
  mark(".");
  return true;
}

void Speaker::weather(Weather kind) {
  const size_t draw = kind == Weather::hot ? 3 : dice_.below(kind == Weather::cold ? 3 : 4);
  const int it = sentence_.en("it"), is = sentence_.en("is");
  sentence_.fr("il", {it});
  constexpr Word en[] = {"raining", "snowing", "cold", "hot"}, fr[] = {"pleut", "neige", "froid", "chaud"};
  const bool very = draw >= 2 && dice_.percent(30);
  const int intensity = very ? sentence_.en("very") : -1, word = sentence_.en(en[draw]);
  if (draw >= 2) sentence_.fr("fait", {is});
  if (very) sentence_.fr("très", {intensity});
  sentence_.fr(fr[draw], {word}, draw < 2 ? Positions{is} : Positions{});
}

bool Speaker::weather_alone() {
  Clause act = draw_clause(choose_.subject(person), true);
  const bool outside = act.verb->frame != Frame::object && act.verb->frame != Frame::listener;
  if (act.verb->aspect == Aspect::simple || act.tense != Tense::present || !(outside || act.verb->base == "wear"))
    return false;
  weather(Weather::any);
  const bool contrast = dice_.percent(50);
  join(contrast ? "but" : "and", contrast ? "mais" : "et");
  write(act);
  mark(".");
  return true;
}

std::optional<AlignedPair> Speaker::speak(bool reverse) {
  struct Construction {
    size_t weight;
    bool (Speaker::*draw)();
  };
  constexpr Construction constructions[] = {
      {34, &Speaker::statement},       {8, &Speaker::with_pronoun},    {5, &Speaker::giving},
      {8, &Speaker::yes_no},           {7, &Speaker::wh_question},     {1, &Speaker::where_is},
      {11, &Speaker::describing},      {4, &Speaker::comparing},       {1, &Speaker::aging},
      {4, &Speaker::locating},         {2, &Speaker::professing},      {3, &Speaker::there_is},
      {3, &Speaker::relative_subject}, {6, &Speaker::relative_object}, {8, &Speaker::compound},
      {4, &Speaker::reason},           {4, &Speaker::thinking},        {2, &Speaker::weather_alone},
      {5, &Speaker::moving},           {2, &Speaker::opening}};
  size_t total = 0;
  for (const Construction& one : constructions) total += one.weight;
  size_t draw = dice_.below(total);
  const Construction* chosen = constructions;
  for (; draw >= chosen->weight; ++chosen) draw -= chosen->weight;
  for (int attempt = 0; attempt < 20;
       ++attempt) {  // retry the same construction: otherwise those that often fail would be rare
    sentence_ = Sentence{};
    if (!(this->*chosen->draw)()) continue;
    AlignedPair pair = sentence_.finish(reverse);
    const auto fits = [](const std::string& side) {
      const auto words = std::count(side.begin(), side.end(), ' ') + 1;
      return words >= 3 && words <= 16;
    };
    if (fits(pair.source) && fits(pair.target)) return pair;
  }
  return std::nullopt;
}

std::optional<AlignedPair> draw_sentence(const Rng& rng, bool reverse) {
  Dice dice(rng);
  return Speaker(dice).speak(reverse);
}

}  // namespace qkv::en_fr
