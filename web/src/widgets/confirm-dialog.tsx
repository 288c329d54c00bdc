// A confirmation dialog for actions that cannot be undone; shows why the action failed.

import * as Dialog from "@radix-ui/react-dialog";
import { type ReactNode, useState } from "react";
import { toProblem, toSentence } from "../base/problem.ts";
import { Button } from "./button.tsx";
import styles from "./confirm-dialog.module.css";
import { DialogContent } from "./dialog.tsx";

interface ConfirmDialogProps {
  /** The button that opens it. */
  readonly trigger: ReactNode;
  readonly title: string;
  /** What the button that does it says: “Delete run”. */
  readonly verb: string;
  /** What follows from it. */
  readonly children: ReactNode;
  onConfirm(): Promise<void>;
}

export function ConfirmDialog({ trigger, title, verb, children, onConfirm }: ConfirmDialogProps) {
  const [isOpen, setOpen] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const open = (wanted: boolean) => {
    setProblem(null);
    setOpen(wanted);
  };
  const confirm = async () => {
    setBusy(true);
    try {
      await onConfirm();
      setOpen(false);
    } catch (error) {
      setProblem(toSentence(toProblem(error).message));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog.Root open={isOpen} onOpenChange={open}>
      <Dialog.Trigger asChild>{trigger}</Dialog.Trigger>
      <DialogContent role="alertdialog" className={styles.dialog}>
        <Dialog.Title>{title}</Dialog.Title>
        <Dialog.Description>{children}</Dialog.Description>
        {problem && <p role="alert">{problem}</p>}
        <footer>
          <Dialog.Close asChild>
            <Button>Keep</Button>
          </Dialog.Close>
          <Button look="primary" disabled={isBusy} onClick={() => void confirm()}>
            {verb}
          </Button>
        </footer>
      </DialogContent>
    </Dialog.Root>
  );
}
