//! The words of an e-mail: its subject, and the text of an operator's template. Its usual text is the report that notes
//! have, too.

use super::template::Values;
use super::{MAY_REPEAT, Notification};
use crate::readable::bounded::cut;

/// The longest text of the operator's template, in characters.
const MAX_TEXT: usize = 4_000;

/// The subject. All messages of a session have the same one, because some mail programs make a thread only of these.
pub fn subject(notification: &Notification) -> String {
    let title = Values::of_notification(notification).title;
    // The beginning of an encoded word, in which a title could hide characters from `visible`.
    format!("[tarsy] {}", title.replace("=?", "=\u{2060}?"))
}

/// The text of the operator's template with its values; `None` without one.
pub fn text(notification: &Notification) -> Option<String> {
    let template = notification.template.as_ref()?;
    let values = Values::of_notification(notification);
    let text = cut(template.filled(&values, str::to_owned), MAX_TEXT);
    Some(if notification.may_repeat {
        format!("{text}\n\n{MAY_REPEAT}")
    } else {
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::Moment;
    use crate::notification::summary::Summary;
    use crate::notification::template::Template;
    use crate::notification::tests::notification;

    #[test]
    fn the_messages_of_a_session_have_one_subject_in_one_line() {
        let summary = Summary {
            title: "disk full\r\nBcc: all@example.com".to_owned(),
            ..notification().summary
        };
        let ended = Notification {
            summary,
            ..notification()
        };
        let mut started = ended.clone();
        started.key.moment = Moment::Started;
        started.summary.outcome = None;
        let expected = "[tarsy] disk full Bcc: all@example.com";
        assert_eq!(
            (subject(&ended), subject(&started)),
            (expected.into(), expected.into())
        );
    }

    #[test]
    fn a_template_has_its_values_and_the_remark() {
        assert_eq!(text(&notification()), None);
        let template = Template::parse("{outcome}: {title}").ok();
        let written = Notification {
            template,
            may_repeat: true,
            ..notification()
        };
        let expected = format!("completed: KubePodOOMKilled checkout\n\n{MAY_REPEAT}");
        assert_eq!(text(&written), Some(expected));
    }
}
