// The verbs of the English-French corpus with all their forms.
#include "qkv/core/check.h"
#include "qkv/data/en_fr_lexicon.h"

namespace qkv::en_fr {

const Word etre_forms[5] = {"suis", "es", "est", "sommes", "sont"};
const Word avoir_forms[5] = {"ai", "as", "a", "avons", "ont"};
const Word aller_forms[5] = {"vais", "vas", "va", "allons", "vont"};
const Word vouloir_forms[5] = {"veux", "veux", "veut", "voulons", "veulent"};
const Word pouvoir_forms[5] = {"peux", "peux", "peut", "pouvons", "peuvent"};
const Word penser_forms[5] = {"pense", "penses", "pense", "pensons", "pensent"};

namespace {

constexpr Aspect simple = Aspect::simple, progressive = Aspect::progressive;
constexpr uint32_t living = person | animal;
constexpr uint32_t indoors = place | shop;

// A verb is a row of the table, which clang-format would turn into a column.
// clang-format off
constexpr Verb verb_table[] = {
    // Things done to things.
    {"eat", "eats", "eating", "ate", "eaten", "",
     "manger", {"mange", "manges", "mange", "mangeons", "mangent"}, "mangé",
     Frame::object, progressive, food, living, indoors},
    {"drink", "drinks", "drinking", "drank", "drunk", "",
     "boire", {"bois", "bois", "boit", "buvons", "boivent"}, "bu",
     Frame::object, progressive, drink, living, indoors},
    {"buy", "buys", "buying", "bought", "bought", "",
     "acheter", {"achète", "achètes", "achète", "achetons", "achètent"}, "acheté",
     Frame::object, progressive, food | drink | readable | clothing | machine | plant | furniture, person, market},
    {"read", "reads", "reading", "read", "read", "",
     "lire", {"lis", "lis", "lit", "lisons", "lisent"}, "lu",
     Frame::object, progressive, readable, person, indoors},
    {"write", "writes", "writing", "wrote", "written", "",
     "écrire", {"écris", "écris", "écrit", "écrivons", "écrivent"}, "écrit",
     Frame::object, progressive, letter, person, indoors},
    {"open", "opens", "opening", "opened", "opened", "",
     "ouvrir", {"ouvre", "ouvres", "ouvre", "ouvrons", "ouvrent"}, "ouvert",
     Frame::object, progressive, door, person},
    {"close", "closes", "closing", "closed", "closed", "",
     "fermer", {"ferme", "fermes", "ferme", "fermons", "ferment"}, "fermé",
     Frame::object, progressive, door, person},
    {"wear", "wears", "wearing", "wore", "worn", "",
     "porter", {"porte", "portes", "porte", "portons", "portent"}, "porté",
     Frame::object, progressive, clothing, person},
    {"watch", "watches", "watching", "watched", "watched", "",
     "regarder", {"regarde", "regardes", "regarde", "regardons", "regardent"}, "regardé",
     Frame::object, progressive, film | animal, living},
    {"lose", "loses", "losing", "lost", "lost", "",
     "perdre", {"perds", "perds", "perd", "perdons", "perdent"}, "perdu",
     Frame::object, progressive, portable, person, indoors, past | perfect},
    // Things done to people.
    {"look", "looks", "looking", "looked", "looked", "for",
     "chercher", {"cherche", "cherches", "cherche", "cherchons", "cherchent"}, "cherché",
     Frame::object, progressive, portable | person | pet | clothing, person, indoors, present | past | modal},
    {"listen", "listens", "listening", "listened", "listened", "to",
     "écouter", {"écoute", "écoutes", "écoute", "écoutons", "écoutent"}, "écouté",
     Frame::object, progressive, sound | person, person},
    {"wait", "waits", "waiting", "waited", "waited", "for",
     "attendre", {"attends", "attends", "attend", "attendons", "attendent"}, "attendu",
     Frame::object, progressive, person | ride, person, shop, present | past | modal},
    {"like", "likes", "liking", "liked", "liked", "",
     "aimer", {"aime", "aimes", "aime", "aimons", "aiment"}, "aimé",
     Frame::object, simple, living | food | drink | readable | film | sound | clothing | plant, person, 0, present},
    {"see", "sees", "seeing", "saw", "seen", "",
     "voir", {"vois", "vois", "voit", "voyons", "voient"}, "vu",
     Frame::object, simple, living | machine | plant | landmark | film, person},
    {"know", "knows", "knowing", "knew", "known", "",
     "connaître", {"connais", "connais", "connaît", "connaissons", "connaissent"}, "connu",
     Frame::object, simple, person | sound, person, 0, present},
    {"want", "wants", "wanting", "wanted", "wanted", "",
     "vouloir", {"veux", "veux", "veut", "voulons", "veulent"}, "voulu",
     Frame::object, simple, food | drink | pet | clothing | machine, person, 0, present},
    {"have", "has", "having", "had", "had", "",
     "avoir", {"ai", "as", "a", "avons", "ont"}, "eu",
     Frame::object, simple, family | pet | machine | portable | clothing, person, 0, present},
    {"give", "gives", "giving", "gave", "given", "",
     "donner", {"donne", "donnes", "donne", "donnons", "donnent"}, "donné",
     Frame::receiver, progressive, portable | plant | clothing | food, person},
    {"talk", "talks", "talking", "talked", "talked", "",
     "parler", {"parle", "parles", "parle", "parlons", "parlent"}, "parlé",
     Frame::listener, progressive, person, person},
    // Things done.
    {"sleep", "sleeps", "sleeping", "slept", "slept", "",
     "dormir", {"dors", "dors", "dort", "dormons", "dorment"}, "dormi",
     Frame::none, progressive, 0, living, place},
    {"work", "works", "working", "worked", "worked", "",
     "travailler", {"travaille", "travailles", "travaille", "travaillons", "travaillent"}, "travaillé",
     Frame::none, progressive, 0, person, indoors | market},
    {"sing", "sings", "singing", "sang", "sung", "",
     "chanter", {"chante", "chantes", "chante", "chantons", "chantent"}, "chanté",
     Frame::none, progressive, 0, person, place},
    {"run", "runs", "running", "ran", "run", "",
     "courir", {"cours", "cours", "court", "courons", "courent"}, "couru",
     Frame::none, progressive, 0, person | runner, place},
    {"rest", "rests", "resting", "rested", "rested", "",
     "reposer", {"repose", "reposes", "repose", "reposons", "reposent"}, "reposé",
     Frame::none, progressive, 0, living, place, present | past | modal, true, true},
    // Going and staying.
    {"go", "goes", "going", "went", "gone", "",
     "aller", {"vais", "vas", "va", "allons", "vont"}, "allé",
     Frame::to_place, progressive, 0, person, 0, present | past | modal, true},
    {"come", "comes", "coming", "came", "come", "back",
     "revenir", {"reviens", "reviens", "revient", "revenons", "reviennent"}, "revenu",
     Frame::from_place, progressive, 0, person, 0, present | past | modal, true},
    {"leave", "leaves", "leaving", "left", "left", "",
     "partir", {"pars", "pars", "part", "partons", "partent"}, "parti",
     Frame::none, progressive, 0, person, 0, present | past | modal, true},
    {"stay", "stays", "staying", "stayed", "stayed", "",
     "rester", {"reste", "restes", "reste", "restons", "restent"}, "resté",
     Frame::at_place, progressive, 0, living, 0, present | past | modal, true},
    {"live", "lives", "living", "lived", "lived", "",
     "habiter", {"habite", "habites", "habite", "habitons", "habitent"}, "habité",
     Frame::city, simple, 0, person, 0, present | modal},
};
// clang-format on

}  // namespace

std::span<const Verb> verbs() { return verb_table; }

const Verb& verb(Word base) {
  for (const Verb& v : verb_table)
    if (v.base == base) return v;
  fail("[en-fr] there is no verb \"", base, "\"");
}

}  // namespace qkv::en_fr
