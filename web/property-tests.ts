// In CI property tests draw the same cases every time, as Hypothesis does there: a change fails for what it did, not for its luck.
// At a desk they go on searching.

import fc from "fast-check";

if (process.env.CI) fc.configureGlobal({ seed: 20260601 });
