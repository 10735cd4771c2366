//! The ARN of a topic, and the addresses of SNS that follow from it.

use url::Url;

/// A topic of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    arn: String,
    region: String,
    /// The end of the host names of its partition.
    domain: &'static str,
}

impl Topic {
    /// Parses `arn:aws:sns:<region>:<account>:<name>`, also of the partitions `aws-cn` and `aws-us-gov`.
    pub fn parse(arn: &str) -> Option<Self> {
        let fields: Vec<&str> = arn.split(':').collect();
        let ["arn", partition, "sns", region, account, name] = fields.as_slice() else {
            return None;
        };
        let domain = match *partition {
            "aws" | "aws-us-gov" => "amazonaws.com",
            "aws-cn" => "amazonaws.com.cn",
            _ => return None,
        };
        let is_region = region.len() <= 32
            && region.split('-').count() >= 3
            && region.split('-').all(|word| !word.is_empty())
            && region
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        let stem = name.strip_suffix(".fifo").unwrap_or(name);
        let is_name = (1..=256).contains(&name.len())
            && !stem.is_empty()
            && stem
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        (is_region && is_account && is_name).then(|| Self {
            arn: arn.to_owned(),
            region: (*region).to_owned(),
            domain,
        })
    }

    pub fn arn(&self) -> &str {
        &self.arn
    }

    pub(super) fn region(&self) -> &str {
        &self.region
    }

    /// The host of SNS in the topic's region.
    pub(super) fn host(&self) -> String {
        format!("sns.{}.{}", self.region, self.domain)
    }

    /// The address of a certificate of SNS, if `sent` is one of this region.
    pub(super) fn certificate_url(&self, sent: &str) -> Option<Url> {
        let path = sent.strip_prefix("https://")?.strip_prefix(&self.host())?;
        let id = path
            .strip_prefix("/SimpleNotificationService-")?
            .strip_suffix(".pem")?;
        let is_id = id.len() == 32
            && id
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let url = format!("https://{}/SimpleNotificationService-{id}.pem", self.host());
        is_id.then(|| Url::parse(&url).ok()).flatten()
    }

    /// The address that confirms a subscription.
    pub(super) fn confirmation_url(&self, token: &str) -> Option<Url> {
        let mut url = Url::parse(&format!("https://{}/", self.host())).ok()?;
        url.query_pairs_mut()
            .append_pair("Action", "ConfirmSubscription")
            .append_pair("TopicArn", &self.arn)
            .append_pair("Token", token);
        Some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn only_the_arn_of_a_topic_is_one() {
        for (arn, host) in [
            (
                "arn:aws:sns:eu-central-1:123456789012:alarms",
                "sns.eu-central-1.amazonaws.com",
            ),
            (
                "arn:aws:sns:us-east-1:123456789012:alarms.fifo",
                "sns.us-east-1.amazonaws.com",
            ),
            (
                "arn:aws-cn:sns:cn-north-1:123456789012:a_b-c",
                "sns.cn-north-1.amazonaws.com.cn",
            ),
            (
                "arn:aws-us-gov:sns:us-gov-west-1:123456789012:a",
                "sns.us-gov-west-1.amazonaws.com",
            ),
        ] {
            assert_eq!(Topic::parse(arn).unwrap().host(), host);
        }
        for wrong in [
            "",
            "arn:aws:sqs:eu-central-1:123456789012:alarms",
            "arn:aws-iso:sns:us-iso-east-1:123456789012:alarms",
            "arn:aws:sns:evil.example/:123456789012:alarms",
            "arn:aws:sns:eu:123456789012:alarms",
            "arn:aws:sns:eu--1:123456789012:alarms",
            "arn:aws:sns:eu-central-1:12345678901:alarms",
            "arn:aws:sns:eu-central-1:123456789012:",
            "arn:aws:sns:eu-central-1:123456789012:.fifo",
            "arn:aws:sns:eu-central-1:123456789012:a.b",
            "arn:aws:sns:eu-central-1:123456789012:alarms:5f",
            "arn:aws:sns:eu-central-1:123456789012:$(x)",
        ] {
            assert_eq!(Topic::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_the_address_of_a_certificate_in_the_region_of_the_topic_is_requested() {
        let topic = Topic::parse("arn:aws:sns:eu-central-1:123456789012:alarms").unwrap();
        let good =
            format!("https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-{ID}.pem");
        assert_eq!(topic.certificate_url(&good).unwrap().as_str(), good);
        for wrong in [
            format!("http://sns.eu-central-1.amazonaws.com/SimpleNotificationService-{ID}.pem"),
            format!("https://sns.us-east-1.amazonaws.com/SimpleNotificationService-{ID}.pem"),
            format!("https://sns.s3.amazonaws.com/SimpleNotificationService-{ID}.pem"),
            format!(
                "https://sns.eu-central-1.amazonaws.com.evil.example/SimpleNotificationService-{ID}.pem"
            ),
            format!(
                "https://sns.eu-central-1.amazonaws.com@evil.example/SimpleNotificationService-{ID}.pem"
            ),
            format!(
                "https://sns.eu-central-1.amazonaws.com:8443/SimpleNotificationService-{ID}.pem"
            ),
            format!("https://sns.eu-central-1.amazonaws.com/x/SimpleNotificationService-{ID}.pem"),
            format!("https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-{ID}.pem?x"),
            format!(
                "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-{ID}.pem#.pem"
            ),
            format!(
                "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-{}.pem",
                ID.to_uppercase()
            ),
            "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-.pem".to_owned(),
            String::new(),
        ] {
            assert_eq!(topic.certificate_url(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_confirmation_is_sent_to_the_region_of_the_topic() {
        let topic = Topic::parse("arn:aws-cn:sns:cn-north-1:123456789012:alarms").unwrap();
        let expected = "https://sns.cn-north-1.amazonaws.com.cn/?Action=ConfirmSubscription\
                        &TopicArn=arn%3Aaws-cn%3Asns%3Acn-north-1%3A123456789012%3Aalarms&Token=2336412f";
        assert_eq!(
            topic.confirmation_url("2336412f").unwrap().as_str(),
            expected
        );
    }
}
