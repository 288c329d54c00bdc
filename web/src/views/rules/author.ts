// The author of mutes and comments: typed once, kept in this browser. Not an account; the server does not verify it.

import { useState } from "react";
import { readStored, writeStored } from "../../base/storage.ts";

const KEY = "clusterscape.author";

export function useAuthor(): readonly [author: string, setAuthor: (author: string) => void] {
  const [author, setAuthor] = useState(() => readStored(KEY) ?? "");
  return [
    author,
    (name) => {
      setAuthor(name);
      writeStored(KEY, name);
    },
  ];
}
