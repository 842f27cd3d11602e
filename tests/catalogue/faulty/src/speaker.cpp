// Sentences with every fault that the check must find.
Text all() {
  say(tr("translated"));
  say(tr("not in the catalogue"));
  say(tr("without translation"));
  refuse("fuzzy {name}", "name"_a = name);
  require(ok, "{fields} differ", "fields"_a = fields);
  return {"said", "说"};
}
