"""What somebody sends who means harm, and what it costs: code run in a process of its own whose memory is measured."""
