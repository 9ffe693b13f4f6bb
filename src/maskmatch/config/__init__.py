"""Every setting, declared once: methods, tasks, similarity, the classifier, training, alignment."""
