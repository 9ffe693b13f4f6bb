"""MaskMatcher: the classifier that users meet."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from maskmatch.config.training import TrainingConfig
from maskmatch.data import Examples, take_examples
from maskmatch.errors import MaskMatchError
from maskmatch.labels.adaptation import MAX_TEXTS
from maskmatch.labels.targets import has_several, row_labels
from maskmatch.progress import showing_progress
from maskmatch.storage.loaded import LoadedClassifier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import TrainerCallback

    from maskmatch.evaluation.explanation import Explanation
    from maskmatch.storage.folder import Classifier
    from maskmatch.training.adapt import AdaptationSummary, DrawnTexts

logger = logging.getLogger("maskmatch")


class MaskMatcher(LoadedClassifier):
    """Classifies texts by the names of labels. Make one with :meth:`from_pretrained`.

    Loading, saving and copying are in :class:`LoadedClassifier`; predicting and evaluating in :class:`Predictor`.

    Attributes:
        training_: The result of the last ``fit``; or of self-training, if there was no ``fit``.
        adaptation_: The result of the last ``adapt``.
        report_: The last evaluation report; the model card shows its figures until the classifier changes.
        predicted_: The predictions of the last evaluation: a label per text, or a list of labels per text.
        cut_: How many texts of the last call were truncated.
        verbose: Whether long calls show their progress.
    """

    def __init__(self, classifier: Classifier, source: str | None = None, *, verbose: bool = True) -> None:
        super().__init__(classifier, source, verbose=verbose)
        self.adaptation_: AdaptationSummary | None = None

    # -- training and evaluation -----------------------------------------------------------------------------

    def fit(
        self,
        texts: Any,
        labels: Any = None,
        *,
        dev: Any = None,
        unlabeled: Any = None,
        self_training: bool = False,
        out_of_scope_rows: bool = False,
        sample_weight: Any = None,
        training: TrainingConfig | None = None,
        callbacks: Sequence[TrainerCallback] = (),
        **options: Any,
    ) -> MaskMatcher:
        """Train on examples. A second call continues from where the first one ended.

        Args:
            texts: Strings or dicts of fields; or a data frame or a Dataset that holds the labels too.
            labels: One label per text, or a list of labels per text; with a data frame, the name of its column.
            dev: Texts and labels, ``(texts, labels)``, or a data frame that holds both, to choose the best
                checkpoint by (and the threshold, with several labels per text).
            unlabeled: Unlabelled texts to adapt to after training, see :meth:`adapt`.
            self_training: Whether to train on confident unlabelled texts, too, see :meth:`adapt`.
            out_of_scope_rows: Whether rows with an empty label (None or "") are texts that no label fits. They are not
                trained on; :meth:`novelty` learns from them. Otherwise an empty label is an error.
            sample_weight: How much each row counts, a number of at least 0 per row. Rows with 0 are left out.
            training: How to train.
            callbacks: Callbacks of transformers' Trainer.
            **options: Fields of TrainingConfig, such as ``epochs``, ``learning_rate``, ``seed``.
        """
        config = (training or TrainingConfig()).changed(options)
        if dev is None and config.patience is not None:
            raise MaskMatchError("patience needs dev data; give dev as well.")
        if self_training and unlabeled is None:
            raise MaskMatchError("self_training needs unlabelled texts; give unlabeled as well.")
        from maskmatch.training.adapt import check_adaptable, draw_texts
        from maskmatch.training.balance import checked_weights
        from maskmatch.training.dev import take_dev
        from maskmatch.training.fit import fit_bank

        fields = self.config.fields
        several = self.config.multi_label
        examples = take_examples(texts, labels, fields, empty_labels=out_of_scope_rows, multi_label=several)
        examples = replace(examples, weights=checked_weights(sample_weight, len(examples)))
        examples, out_of_scope = examples.split_empty_labels() if out_of_scope_rows else (examples, [])
        if out_of_scope_rows and has_several(examples.labels or ()):
            raise MaskMatchError(
                "Texts out of scope need one label per text; with several, an empty list is a row without any label."
            )
        if out_of_scope_rows and not out_of_scope:
            logger.warning("No row has an empty label, so there are no texts out of scope.")
        dev = None if dev is None else take_dev(dev, self.config)
        drawn = None
        if unlabeled is not None:  # what cannot work is reported before training
            several = self.config.multi_label or has_several(examples.labels or ())
            check_adaptable(replace(self.config, multi_label=several), self.labels)
            drawn = draw_texts(unlabeled, fields, MAX_TEXTS, config.seed)
        self._evaluation = None
        with showing_progress(self.verbose):
            fitted = fit_bank(
                self._bank,
                examples,
                dev=dev,
                config=config,
                callbacks=callbacks,
                trained=self.training_ is not None,
                out_of_scope=out_of_scope,
            )
        self._bank = fitted.bank
        self.training_, self.cut_ = fitted.summary, fitted.summary.cut
        self.adaptation_ = None
        if drawn is None:
            return self
        return self._learn(drawn, dev=dev, self_training=self_training, config=config, examples=examples)

    def adapt(
        self,
        texts: Any,
        *,
        dev: Any = None,
        force: bool = False,
        max_texts: int = MAX_TEXTS,
        seed: int = 0,
        self_training: bool = False,
    ) -> MaskMatcher:
        """Learn from unlabelled texts, in seconds.

        Before training, label vectors are shifted towards the texts that are nearest. After training, the vectors of
        texts are shifted towards similar unlabelled texts. The weights stay as they are, and texts are not kept. Labels
        can still be edited. The texts themselves tell whether adapting would probably do harm; then the classifier
        stays as it is, with a warning.

        With self-training, the weights are trained for some minutes on the texts of which the adapted classifier is
        most confident. That helps or does harm, so give dev data, which decide; without them, the result is used.

        Args:
            texts: Unlabelled texts, like those to be classified; also those themselves. A list, a data frame, or a
                stream, which is read in constant memory.
            dev: Labelled texts, ``(texts, labels)`` or a data frame, that decide whether to adapt.
            force: Whether to adapt in any case.
            max_texts: How many texts to use at most, drawn at random.
            seed: The seed of the draw.
            self_training: Whether to train on confident texts, too.
        """
        from maskmatch.training.adapt import check_adaptable, draw_texts

        self._check_trained()
        check_adaptable(self.config, self._bank.known_labels)
        drawn = draw_texts(texts, self.config.fields, max_texts, seed)
        config = TrainingConfig(seed=seed)
        return self._learn(drawn, dev=dev, force=force, self_training=self_training, config=config)

    def _learn(
        self,
        texts: DrawnTexts,
        *,
        dev: Any,
        self_training: bool,
        config: TrainingConfig,
        force: bool = False,
        examples: Examples | None = None,
    ) -> MaskMatcher:
        """Learn from unlabelled texts."""
        from maskmatch.training.self_training import learn_from_texts

        with showing_progress(self.verbose):
            learned = learn_from_texts(
                self._bank,
                texts,
                dev=dev,
                force=force,
                trained=self.training_ is not None,
                self_training=self_training,
                config=config,
                examples=examples,
            )
        self._bank, self._evaluation, self.adaptation_ = learned.bank, None, learned.summary
        if learned.training is not None and self.training_ is not None:
            self.training_ = replace(self.training_, calibrated_on=learned.training.calibrated_on)
        self.training_ = self.training_ or learned.training
        return self

    def calibrate(self, texts: Any, labels: Any = None) -> MaskMatcher:
        """Calibrate probabilities on labelled texts that were not trained on; predicted labels stay the same.

        Several labels per text get thresholds, too, which may change which labels apply.

        Args:
            texts: Strings or dicts of fields; or a data frame or a Dataset that holds the labels too.
            labels: One label per text, or a list of labels per text; with a data frame, the name of its column. Rows
                with a label that the classifier does not have are left out.
        """
        from maskmatch.training.held_out import calibrate_bank

        self._check_trained()
        examples = take_examples(texts, labels, self.config.fields, multi_label=self.config.multi_label)
        if has_several(examples.labels or ()) and not self.config.multi_label:
            raise MaskMatchError("These rows have several labels each, but the classifier gives one label per text.")
        rows = row_labels(examples, self.labels, self.config.multi_label)
        with showing_progress(self.verbose):
            self._bank = calibrate_bank(self._bank, examples.texts, rows)
        self._evaluation = None
        return self

    def abstain_below(self, probability: float) -> MaskMatcher:
        """Answer none below this probability of the best label from now on; it is saved with the classifier."""
        self._reconfigure({"abstain": self.least_probability(probability)})
        return self

    def explain(self, text: Any, *, k: int = 3, mask_words: bool = False) -> Explanation:
        """Why a text gets its label: the words that speak for each of its k most probable labels.

        Each word is removed, one at a time, and all these texts are classified in one batch. If training kept its texts
        (``fit(…, keep_texts=True)``), the most similar ones are part of the explanation.

        Args:
            text: A string, or a dict of fields.
            k: How many labels to explain.
            mask_words: Whether to add the words that the encoder's own language-model head would put at the mask.
        """
        explanation = super().explain(text, k=k)
        if not mask_words:
            return explanation
        from maskmatch.model.mask_words import mask_words as words_at_mask

        words = words_at_mask(self.encoder, self.config, text)
        notes = () if words else (f"The encoder {self.encoder.source} has no language-model head for words at a mask.",)
        return replace(explanation, mask_words=words, notes=(*explanation.notes, *notes))
