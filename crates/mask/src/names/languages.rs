//! Words for a password in other languages and in other letters: a view of a text with English words in their place, so
//! that all rules apply to them.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::decoded_view::DecodedView;

/// Words of ASCII letters, also those whose marks are left out.
pub(super) const PASSWORDS: [&str; 26] = [
    "kennwort",
    "passe",
    "contrasena",
    "contrasenya",
    "contrasinal",
    "senha",
    "wachtwoord",
    "haslo",
    "heslo",
    "geslo",
    "parola",
    "parole",
    "jelszo",
    "salasana",
    "losenord",
    "passord",
    "adgangskode",
    "sifre",
    "lozinka",
    "clave",
    "sandi",
    "parool",
    "slaptazodis",
    "passphrase",
    "passwort",
    "psk",
];

/// Words with other letters, and the English word.
const TRANSLATIONS: [(&str, &str); 58] = [
    ("contraseña", "password"),
    ("Contraseña", "password"),
    ("CONTRASEÑA", "password"),
    ("hasło", "password"),
    ("Hasło", "password"),
    ("lösenord", "password"),
    ("Lösenord", "password"),
    ("şifre", "password"),
    ("Şifre", "password"),
    ("jelszó", "password"),
    ("Jelszó", "password"),
    ("mật khẩu", "password"),
    ("Mật khẩu", "password"),
    ("parolă", "password"),
    ("Parolă", "password"),
    ("slaptažodis", "password"),
    ("пароль", "password"),
    ("Пароль", "password"),
    ("ПАРОЛЬ", "password"),
    ("пароля", "password"),
    ("парола", "password"),
    ("Парола", "password"),
    ("лозинка", "password"),
    ("Лозинка", "password"),
    ("токен", "token"),
    ("Токен", "token"),
    ("секрет", "secret"),
    ("Секрет", "secret"),
    ("κωδικός πρόσβασης", "password"),
    ("κωδικός", "password"),
    ("Κωδικός", "password"),
    ("συνθηματικό", "password"),
    ("パスワード", "password"),
    ("パスフレーズ", "password"),
    ("暗証番号", "password"),
    ("合言葉", "password"),
    ("トークン", "token"),
    ("シークレット", "secret"),
    ("秘密鍵", "private_key"),
    ("密码", "password"),
    ("密碼", "password"),
    ("口令", "password"),
    ("令牌", "token"),
    ("密钥", "secret_key"),
    ("密鑰", "secret_key"),
    ("私钥", "private_key"),
    ("비밀번호", "password"),
    ("암호", "password"),
    ("패스워드", "password"),
    ("토큰", "token"),
    ("סיסמה", "password"),
    ("סיסמא", "password"),
    ("كلمة المرور", "password"),
    ("كلمة السر", "password"),
    ("رمز عبور", "password"),
    ("पासवर्ड", "password"),
    ("รหัสผ่าน", "password"),
    ("পাসওয়ার্ড", "password"),
];

static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let words = TRANSLATIONS.iter().map(|(word, _)| word);
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(words)
        .ok()
});

/// Letters that look like Latin ones, in the order of [`LATIN`].
const LOOK_ALIKES: &str = "аеорсухіјѕһԁԛԝьАВЕКМНОРСТУХІЈЅαοερτικνυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ";
const LATIN: &str = "aeopcyxijshdqwbABEKMHOPCTYXIJSaoepTikvuABEZHIKMNOPTYX";

/// The text with English words for those of other languages, and with ASCII letters for full-width ones and for those
/// that look like Latin ones within a Latin word; `None` if it has no such word.
pub(crate) fn translate(raw: &str) -> Option<DecodedView> {
    if raw.is_ascii() {
        return None;
    }
    let mut view = DecodedView::of_length(raw.len());
    let mut done = 0;
    let mut words = FINDER.as_ref()?.find_iter(raw).peekable();
    let mut before = ' ';
    let mut letters = raw.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        if let Some(word) = words.next_if(|word| word.start() == at) {
            let english = TRANSLATIONS
                .get(word.pattern().as_usize())
                .map_or("", |(_, english)| *english);
            view.copied(raw.get(done..at).unwrap_or_default(), done);
            english.chars().for_each(|c| view.replaced(Some(c), at));
            done = word.end();
            while letters.next_if(|(at, _)| *at < done).is_some() {}
            before = 'd';
            continue;
        }
        let after = letters.peek().map_or(' ', |(_, c)| *c);
        let is_in_latin_word = is_latin(before) || is_latin(after);
        let latin = full_width(c).or_else(|| if is_in_latin_word { latin(c) } else { None });
        before = latin.unwrap_or(c);
        if let Some(latin) = latin {
            view.copied(raw.get(done..at).unwrap_or_default(), done);
            view.replaced(Some(latin), at);
            done = at + c.len_utf8();
        }
    }
    if done == 0 {
        return None;
    }
    view.copied(raw.get(done..).unwrap_or_default(), done);
    Some(view)
}

fn is_latin(c: char) -> bool {
    c.is_ascii_alphabetic()
}

/// The ASCII character of a full-width one.
fn full_width(c: char) -> Option<char> {
    ('\u{ff01}'..='\u{ff5e}')
        .contains(&c)
        .then(|| char::from_u32(u32::from(c) - 0xfee0))?
}

/// The Latin letter that looks like this one.
fn latin(c: char) -> Option<char> {
    if !('\u{370}'..='\u{52f}').contains(&c) {
        return None;
    }
    LOOK_ALIKES
        .chars()
        .zip(LATIN.chars())
        .find(|(look_alike, _)| *look_alike == c)
        .map(|(_, latin)| latin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_words_and_letters_become_english_ones() {
        let view = |raw| translate(raw).map(|view| view.text);
        assert_eq!(
            view("Пароль: x, パスワード：y"),
            Some("password: x, password:y".to_owned())
        );
        assert_eq!(view("ｐａｓｓ"), Some("pass".to_owned()));
        assert_eq!(view("p\u{430}ssw\u{43e}rd"), Some("password".to_owned()));
        assert_eq!(view("größe это"), None);
        assert_eq!(LOOK_ALIKES.chars().count(), LATIN.chars().count());
    }
}
