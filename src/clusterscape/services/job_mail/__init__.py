"""Mails to users whose jobs ended: the card, one picture, what would have been enough, and digests.

``choices``: which mails a user gets.
``composing``: cards become mails; pure.
``leads``: the weekly digest to the leads of projects.
``mailer``: reads what the MailProg spooled, decides what is sent when, and sends it.
``outbox``: requests and mails on disk, until they are sent.
``picture``: a curve as a PNG.
``requests``: what Slurm says of a job when it calls the MailProg.
"""

from clusterscape.services.job_mail.mailer import JobMailer

__all__ = ["JobMailer"]
