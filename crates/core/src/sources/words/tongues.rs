//! Words of states and severities in other languages than English. Words of languages without spaces are found inside a
//! text; `未` and the like before them turn their meaning.

use super::WordList;
use crate::alert::Severity;

/// Ends of a problem, as whole pieces.
pub(super) const ENDS: WordList = WordList::new(
    "behoben gelöst geloest erledigt beendet geschlossen wiederhergestellt entwarnung opgelost hersteld gesloten \
     åtgärdad åtgärdat löst løst afsluttet résolu résolue resolu resolue rétabli rétablie retabli fermé fermée \
     resuelto resuelta recuperado recuperada cerrado cerrada solucionado resolvido resolvida normalizado fechado \
     risolto risolta ripristinato chiuso resolt rozwiązany rozwiązano zamknięty vyřešeno obnoveno решено решена \
     восстановлено восстановлен восстановлена устранено закрыто çözüldü",
);
/// Words of a good state, as whole pieces: ends if nothing else is said.
pub(super) const GOOD: WordList =
    WordList::new("ordnung норма normale normaal sano gesund erreichbar");
/// Words of a problem, as whole pieces.
pub(super) const PROBLEMS: WordList = WordList::new(
    "störung stoerung fehler ausfall ausgefallen warnung kritisch panne échec echec alerte erreur fallo caído caida \
     alerta falha errore guasto allarme storing fout awaria błąd проблема авария сбой ошибка предупреждение \
     недоступен arıza nicht ohne не",
);
/// Ends in languages without spaces.
pub(super) const WRITTEN_ENDS: WordList = WordList::new(
    "恢复 恢復 已解决 已解決 正常 解除 解決 復旧 回復 復帰 解消 已关闭 已關閉 已消除 已清除 해결 복구 정상 해제 종료됨 回复正常 クローズ",
);
/// Words that turn such an end into a problem.
pub(super) const WRITTEN_NOTS: WordList = WordList::new(
    "未 不 非 无法 無法 没 沒 待 异常 異常 失败 失敗 故障 障害 中 미 불가 실패 않 비정상 発生 できない 困难 部分",
);
/// Problems in languages without spaces.
pub(super) const WRITTEN_PROBLEMS: WordList = WordList::new(
    "告警 报警 警报 警報 故障 异常 異常 严重 紧急 触发 障害 発生 重大 緊急 장애 경고 심각 발생",
);

/// Words of severities, as whole pieces.
const SEVERITIES: [(Severity, WordList); 4] = [
    (
        Severity::Critical,
        WordList::new(
            "kritisch critique crítico crítica critico critica krytyczny krytyczna kritický kritiek kritisk \
                 критический критическая критично критическое чрезвычайная katastrophe désastre desastre notfall \
                 urgente dringend kritik",
        ),
    ),
    (
        Severity::High,
        WordList::new(
            "hoch hohe hoog schwer schwerwiegend élevé élevée eleve haute grave majeur majeure alta alto fehler \
                 erreur errore wysoki vysoká высокая высокий ernstig hög yüksek",
        ),
    ),
    (
        Severity::Normal,
        WordList::new(
            "mittel moyen moyenne media medio média médio warnung avertissement advertencia aviso avviso \
                 waarschuwing ostrzeżenie varování varning предупреждение средняя средний midden średni",
        ),
    ),
    (
        Severity::Low,
        WordList::new(
            "niedrig gering faible bas basse baja bajo baixa baixo bassa basso laag niski nízká низкая низкий \
                 información informação informazione информация hinweis",
        ),
    ),
];
/// Words of severities in languages without spaces, the worst first.
const WRITTEN_SEVERITIES: [(Severity, WordList); 4] = [
    (
        Severity::Critical,
        WordList::new("致命 灾难 災難 紧急 緊急 严重 嚴重 危急 重大 치명 심각 긴급"),
    ),
    (
        Severity::High,
        WordList::new("重要 高 错误 錯誤 エラー 높음 오류"),
    ),
    (
        Severity::Normal,
        WordList::new("警告 中 注意 次要 一般 경고 보통"),
    ),
    (
        Severity::Low,
        WordList::new("提示 信息 通知 低 情報 낮음 정보"),
    ),
];

/// The severity of a piece in another language than English.
pub(super) fn severity_of(piece: &str) -> Option<Severity> {
    let known = SEVERITIES.iter().find(|(_, words)| words.contains(piece));
    known.map(|(severity, _)| *severity)
}

/// The severity of a text in a language without spaces.
pub(super) fn written_severity(text: &str) -> Option<Severity> {
    let known = WRITTEN_SEVERITIES
        .iter()
        .find(|(_, words)| words.is_in(text));
    known.map(|(severity, _)| *severity)
}
