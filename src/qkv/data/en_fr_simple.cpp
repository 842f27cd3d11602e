// Sentences of one clause, and the parts shared by all sentences.
#include "qkv/data/en_fr_speaker.h"

namespace qkv::en_fr {

using Kind = NounPhrase::Kind;

const Verb& Speaker::draw_verb(const std::function<bool(const Verb&)>& fits) {
  std::vector<const Verb*> found;
  for (const Verb& one : verbs())
    if (fits(one)) found.push_back(&one);
  return *found[dice_.below(found.size())];
}

Tense Speaker::draw_tense(const Verb& verb) {
  for (;;) {
    const size_t draw = dice_.below(100);
    const Tense tense = draw < 52   ? Tense::present
                        : draw < 77 ? Tense::past
                        : draw < 80 ? Tense::perfect
                        : draw < 88 ? Tense::future
                        : draw < 95 ? Tense::want
                                    : Tense::can;
    const uint32_t use = tense == Tense::present   ? present
                         : tense == Tense::past    ? past
                         : tense == Tense::perfect ? perfect
                                                   : modal;
    const bool needs_object = tense == Tense::perfect && verb.frame != Frame::object;
    if ((verb.uses & use) && !needs_object) return tense;
  }
}

void Speaker::draw_polarity(Clause& clause) {
  if (clause.tense == Tense::perfect)
    clause.polarity = Polarity::never;
  else if (dice_.percent(28))
    clause.polarity = Polarity::negative;
}

void Speaker::draw_time(Clause& clause) {
  const bool habitual =
      clause.tense == Tense::present && clause.verb->aspect == Aspect::progressive && dice_.percent(35);
  if (habitual) {
    const size_t draw = dice_.below(100);
    if (draw < 25 && clause.polarity == Polarity::affirmative)
      clause.polarity = Polarity::never;
    else if (draw < 55)
      clause.adverb = dice_.percent(50) ? Adverb::often : Adverb::always;
    else {
      clause.time = &dice_.pick(habit_times());
      clause.habit = true;
    }
    return;
  }
  if (!dice_.percent(30) || clause.verb->frame == Frame::city) return;
  if (clause.tense == Tense::past) clause.time = &dice_.pick(past_times());
  if (clause.tense == Tense::future || clause.tense == Tense::want) clause.time = &dice_.pick(future_times());
  if (clause.tense == Tense::present && clause.verb->aspect == Aspect::progressive)
    clause.time = &dice_.pick(present_times());
}

// Objects and places that the verb requires.
void Speaker::complete(Clause& clause, bool with_place) {
  const Verb& verb = *clause.verb;
  const uint32_t who = clause.subject.classes();
  const uint32_t range = who & person ? place | shop
                         : who & pet  ? place
                                      : outdoors;  // horses do not rest in the kitchen
  if (verb.frame == Frame::object || verb.frame == Frame::receiver) clause.object = choose_.object(clause);
  if (verb.frame == Frame::receiver || verb.frame == Frame::listener) {
    clause.receiver = choose_.definite(person);
    if (dice_.percent(40)) clause.receiver = choose_.named();
    if (clause.receiver->head() == clause.subject.head()) clause.receiver = choose_.definite(family);
    // Paul gives it to his mother, not to Paul's.
    if (clause.receiver->noun && clause.receiver->name && clause.receiver->name == clause.subject.name) {
      clause.receiver->name = nullptr;
      clause.receiver->determiner = Determiner::our;
    }
  }
  if (verb.frame == Frame::to_place) clause.place = choose_.destination(Place::Role::to);
  if (verb.frame == Frame::from_place) clause.place = choose_.destination(Place::Role::from);
  if (verb.frame == Frame::city) {
    clause.place.emplace();
    clause.place->town = &dice_.pick(towns());
  }
  if (verb.frame == Frame::at_place) clause.place = choose_.somewhere(range);
  if (with_place && verb.places) clause.place = choose_.somewhere(who & person ? verb.places : range);
  if (verb.base == "run" && clause.place && !clause.place->noun) clause.place.reset();
}

Clause Speaker::draw_clause(const NounPhrase& subject, bool short_one) {
  Clause clause;
  clause.subject = subject;
  clause.verb = &draw_verb([&](const Verb& one) {
    return (one.subjects & subject.classes()) && (!short_one || one.frame != Frame::receiver);
  });
  clause.tense = draw_tense(*clause.verb);
  draw_polarity(clause);
  if (!short_one) draw_time(clause);
  complete(clause, !short_one && dice_.percent(25));
  return clause;
}

Clause Speaker::draw_clause(const NounPhrase& subject, const Verb& verb, Tense tense, Polarity polarity) {
  Clause clause;
  clause.subject = subject;
  clause.verb = &verb;
  clause.tense = tense;
  clause.polarity = polarity;
  complete(clause, false);
  return clause;
}

Copula Speaker::draw_copula(const NounPhrase& subject) {
  struct State {
    Word en, fr;
  };
  constexpr State states[] = {{"hungry", "faim"}, {"thirsty", "soif"}, {"sleepy", "sommeil"}};
  Copula copula;
  copula.subject = subject;
  copula.negated = dice_.percent(28);
  if (subject.classes() & person && dice_.percent(25)) {
    const State& state = states[dice_.below(std::size(states))];
    copula.state_en = state.en;
    copula.state_fr = state.fr;
  } else {
    copula.adjective = choose_.predicate(subject);
  }
  if (!copula.adjective) return copula;
  const Word word = copula.adjective->en;
  copula.very = word != "open" && word != "closed" && !copula.adjective->joins && dice_.percent(22);
  return copula;
}

bool Speaker::statement() {
  Clause clause = draw_clause(draw_actor(Chooser::Known::maybe), false);
  const Determiner determiner = clause.subject.determiner;
  const bool indefinite =
      determiner == Determiner::a || determiner == Determiner::some || determiner >= Determiner::two;
  const bool unknown = clause.subject.noun && indefinite;
  if (unknown && clause.polarity != Polarity::affirmative) return false;
  const Time* front = nullptr;
  if (clause.time && !clause.habit && dice_.percent(25)) std::swap(front, clause.time);
  if (front) {
    sentence_.fr_phrase(*front, sentence_.en_phrase(front->en));
    mark(",");
  }
  write(clause);
  mark(".");
  return true;
}

// They left: with être the participle shows who.
bool Speaker::moving() {
  Clause clause;
  clause.subject = choose_.subject(person);
  if (dice_.percent(60)) clause.subject = choose_.definite(dice_.percent(80) ? person : animal);
  clause.verb = &draw_verb([&](const Verb& one) { return one.etre && one.subjects & clause.subject.classes(); });
  clause.tense = Tense::past;
  draw_polarity(clause);
  draw_time(clause);
  complete(clause, dice_.percent(20));
  write(clause);
  mark(".");
  return true;
}

// The doors are open: a word that is also a verb in English.
bool Speaker::opening() {
  Copula copula;
  copula.subject = choose_.definite(door | shop);
  copula.adjective = choose_.predicate(copula.subject);
  if (!copula.adjective || copula.adjective->position != Position::predicate) return false;
  copula.negated = dice_.percent(30);
  copula.asks = !copula.negated && dice_.percent(20);
  write(copula);
  mark(copula.asks ? "?" : ".");
  return true;
}

bool Speaker::with_pronoun() {
  Clause clause;
  clause.subject = choose_.subject(person);
  clause.verb = &draw_verb([](const Verb& one) { return one.frame == Frame::object && one.objects & person; });
  clause.tense = draw_tense(*clause.verb);
  draw_polarity(clause);
  clause.pronoun = choose_.object_pronoun(clause);
  draw_time(clause);
  if (dice_.percent(20)) clause.question = clause.polarity == Polarity::affirmative ? Question::yes_no : Question::none;
  write(clause);
  mark(clause.question == Question::none ? "." : "?");
  return true;
}

bool Speaker::giving() {
  Clause clause;
  clause.subject = choose_.subject(person);
  clause.verb = &verb("give");
  clause.tense = draw_tense(*clause.verb);
  draw_polarity(clause);
  if (dice_.percent(30)) draw_time(clause);
  complete(clause, false);
  if (dice_.percent(60)) {
    const ObjectPronoun* whom = choose_.object_pronoun(clause);
    if (!whom->fr_indirect.empty()) {
      clause.to_whom = whom;
      clause.receiver.reset();
    }
  }
  write(clause);
  mark(".");
  return true;
}

bool Speaker::yes_no() {
  if (dice_.percent(35)) {
    Copula copula =
        draw_copula(dice_.percent(70) ? choose_.subject(person) : choose_.definite(animal | shop | door | warm));
    copula.asks = true;
    copula.negated = false;
    write(copula);
  } else {
    Clause clause;
    clause.subject = draw_actor();
    clause.verb = &draw_verb([&](const Verb& one) { return (one.subjects & clause.subject.classes()) != 0; });
    do clause.tense = draw_tense(*clause.verb);
    while (clause.tense == Tense::perfect);
    draw_time(clause);
    if (clause.polarity == Polarity::never) clause.polarity = Polarity::affirmative;
    clause.question = Question::yes_no;
    complete(clause, dice_.percent(20));
    write(clause);
  }
  mark("?");
  return true;
}

bool Speaker::wh_question() {
  Clause clause;
  clause.question = dice_.pick({Question::none, Question::where, Question::why, Question::what});
  clause.subject = draw_actor();
  if (clause.question == Question::none) {
    clause.subject = NounPhrase{};
    clause.subject.kind = Kind::who;
  }
  const uint32_t classes = clause.subject.classes();
  clause.verb = &draw_verb([&](const Verb& one) {
    if (!(one.subjects & classes)) return false;
    if (clause.question == Question::where)
      return one.frame == Frame::to_place || one.base == "stay" || one.frame == Frame::city || one.places != 0;
    if (clause.question == Question::what)
      return one.frame == Frame::object && one.base != "know" && one.base != "have";
    return true;
  });
  do clause.tense = draw_tense(*clause.verb);
  while (clause.tense == Tense::perfect || (clause.tense == Tense::can && clause.question == Question::why));
  if (clause.question != Question::none && clause.subject.agreement.person == 0) return false;  // who would ask?
  if (clause.question == Question::none || clause.question == Question::why) draw_polarity(clause);
  draw_time(clause);
  if (clause.question != Question::none && clause.polarity == Polarity::never) clause.polarity = Polarity::affirmative;
  if (clause.question != Question::what) complete(clause, false);
  if (clause.question == Question::where) clause.place.reset();
  write(clause);
  mark("?");
  return true;
}

bool Speaker::where_is() {
  NounPhrase subject = choose_.definite(person | pet | portable | machine | clothing);
  if (dice_.percent(20)) subject = choose_.named();
  const int where = sentence_.en("where"), be = sentence_.en(be_form(subject.agreement));
  subject.write_en(sentence_);
  sentence_.relate("where", subject.head(), "be");
  sentence_.fr("où", {where});
  sentence_.fr(etre_forms[subject.agreement.person], {be});
  subject.write_fr(sentence_);
  mark("?");
  return true;
}

bool Speaker::describing() {
  const bool thing = dice_.percent(45);
  constexpr uint32_t things =
      food | drink | readable | clothing | machine | door | plant | film | shop | landmark | furniture | sound;
  NounPhrase subject = thing ? choose_.definite(things) : draw_actor();
  if (thing && !choose_.predicate(subject)) subject = choose_.definite(clothing);
  if (thing) subject.after = nullptr;
  Copula copula = draw_copula(subject);
  const bool costs = thing && !subject.before && subject.noun->classes & (clothing | machine) && dice_.percent(30);
  if (costs) copula.adjective = &adjective("expensive");
  write(copula);
  mark(".");
  return true;
}

bool Speaker::comparing() {
  const uint32_t kind = dice_.percent(75) ? person : animal;
  Copula copula;
  copula.subject = kind == person && dice_.percent(60) ? (dice_.percent(50) ? choose_.pronoun() : choose_.named())
                                                       : choose_.definite(kind);
  copula.than = kind == person && dice_.percent(50) ? choose_.named() : choose_.definite(kind);
  if (copula.subject.head() == copula.than->head()) return false;
  for (NounPhrase* phrase : {&copula.subject, &*copula.than}) phrase->before = phrase->after = nullptr;
  const uint32_t classes = copula.subject.classes() & copula.than->classes();
  std::vector<const Adjective*> found;
  for (const Adjective& one : adjectives())
    if (!one.comparative.empty() && one.classes & classes && (kind == person || one.en == "old" || one.en == "young"))
      found.push_back(&one);
  if (found.empty()) return false;
  copula.adjective = found[dice_.below(found.size())];
  copula.negated = dice_.percent(20);
  write(copula);
  mark(".");
  return true;
}

bool Speaker::aging() {
  struct Number {
    Word en, fr;
  };
  constexpr Number numbers[] = {
      {"two", "deux"}, {"three", "trois"}, {"four", "quatre"}, {"five", "cinq"}, {"six", "six"}};
  Copula copula;
  copula.subject = choose_.subject(dice_.percent(80) ? person : animal);
  const Noun* noun = copula.subject.noun;
  if (noun && (noun->classes & (adult | profession) || (noun->classes & family && noun->count == Count::singular)))
    return false;
  const Number& number = numbers[dice_.below(std::size(numbers))];
  copula.years_en = number.en;
  copula.years_fr = number.fr;
  copula.negated = dice_.percent(15);
  copula.asks = !copula.negated && dice_.percent(15);
  write(copula);
  mark(copula.asks ? "?" : ".");
  return true;
}

bool Speaker::locating() {
  Copula copula;
  const size_t draw = dice_.below(100);
  if (draw < 45) {
    copula.subject = choose_.definite(portable | pet);
    copula.place = choose_.position();
    if (copula.place->noun->en == copula.subject.head()) return false;
  } else {
    copula.subject = choose_.subject(person);
    copula.place = choose_.somewhere(place | shop | market);
    if (dice_.percent(30)) {
      copula.place.emplace();
      copula.place->town = &dice_.pick(towns());
    }
  }
  copula.negated = dice_.percent(25);
  copula.asks = !copula.negated && dice_.percent(20);
  write(copula);
  mark(copula.asks ? "?" : ".");
  return true;
}

bool Speaker::professing() {
  Copula copula;
  copula.subject = choose_.subject(person);
  if (copula.subject.noun && copula.subject.noun->classes & profession) copula.subject = choose_.named();
  const bool feminine = copula.subject.agreement.gender == Gender::feminine;
  do copula.profession = choose_.noun(profession).noun;
  while (copula.profession->en == (feminine ? "student" : "nurse"));
  copula.negated = dice_.percent(25);
  copula.asks = !copula.negated && dice_.percent(20);
  write(copula);
  mark(copula.asks ? "?" : ".");
  return true;
}

}  // namespace qkv::en_fr
