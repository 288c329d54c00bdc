// Who writes mutes and comments: said once, remembered by this browser. Not an account; the server believes it.

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
