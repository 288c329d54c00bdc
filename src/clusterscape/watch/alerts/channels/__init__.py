"""One file per kind of channel: the format of a message, how it is sent, and what the response means.

``build``: builds channels from their settings.
``http``: posts a body over HTTP; decides whether a failure is worth a retry.
``message_text``: a message as text: subject and one line per workload.
``site_info``: the name of the cluster and links to its page.
``smtp``: submits mails to a server.
``user_mail``: the mail to the user of a job.
"""
