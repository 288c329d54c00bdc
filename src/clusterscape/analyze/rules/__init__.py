"""The rule language and rule evaluation: text, JSON and form fields ↔ records; statistics of lives → verdicts.

``checking``: validation of rules.
``completion``: autocompletion of rule text, and the whole vocabulary for a form.
``documents``: rules as JSON and as form fields.
``evaluation``: evaluates rules on lives, and explains the verdicts.
``facts``: the lives to evaluate, and three-valued logic.
``prometheus_rules``: exports rules as Prometheus alerting rules over dcgm-exporter's metrics, where PromQL can express them.
``reading``: the parser of rule text.
``reference``: the reference page of the rule language, generated from the vocabulary.
``replay``: evaluates rules on recorded lives as if they were live.
``scanner``: the tokenizer of rule text, with error positions.
``scope_reading``: the parser of scopes: what a rule applies to, from when on, and what it reports.
``shipped``: the rules of ``shipped.toml``; run `make docs` after a change.
``vocabulary``: names of metrics, statistics and units, and numbers with units.
``writing``: rules as canonical text, and as sentences.
"""
