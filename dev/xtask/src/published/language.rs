//! The languages of the pages, and what pages say in each.

use super::source::Reason;
use super::verdict::{NowVerdict, SentenceVerdict, ThenVerdict};

/// A language of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Language {
    English,
    Chinese,
}

impl Language {
    pub(super) const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// The part of file names that says the language of a text.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    /// What comes between the name of a page and its ending.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::English => "",
            Self::Chinese => ".zh",
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::English => Self::Chinese,
            Self::Chinese => Self::English,
        }
    }

    pub(super) fn words(self) -> &'static Words {
        match self {
            Self::English => &ENGLISH,
            Self::Chinese => &CHINESE,
        }
    }

    /// The verdict in words.
    pub(super) fn verdict(self, verdict: SentenceVerdict) -> String {
        let words = self.words();
        match verdict {
            SentenceVerdict::HoldsThenAndNow => words.holds_then_and_now.to_owned(),
            SentenceVerdict::HoldsNow => words.holds_now.to_owned(),
            SentenceVerdict::HoldsThen => words.holds_then.to_owned(),
            SentenceVerdict::DoesNotHold => words.does_not_hold.to_owned(),
            SentenceVerdict::Undecided => words.undecided.to_owned(),
            SentenceVerdict::NotComparable(reason) => {
                format!("{}{}", words.not_comparable, self.reason(reason))
            }
        }
    }

    pub(super) fn then(self, then: ThenVerdict) -> &'static str {
        let words = self.words();
        match then {
            ThenVerdict::Holds => words.holds,
            ThenVerdict::DoesNotHold => words.does_not_hold,
            ThenVerdict::Undecided => words.undecided,
            ThenVerdict::NotRun => words.not_run,
        }
    }

    pub(super) fn now(self, now: NowVerdict) -> &'static str {
        let words = self.words();
        match now {
            NowVerdict::Holds => words.holds,
            NowVerdict::DoesNotHold => words.does_not_hold,
            NowVerdict::Undecided => words.undecided,
            NowVerdict::OtherVersion => words.other_version,
        }
    }

    pub(super) fn reason(self, reason: Reason) -> &'static str {
        match (self, reason) {
            (Self::English, Reason::Hardware) => "other hardware decides it",
            (Self::English, Reason::Picture) => "its picture or table is lost",
            (Self::English, Reason::Product) => "the product is not to be had",
            (Self::English, Reason::Contradiction) => "the source contradicts itself",
            (Self::Chinese, Reason::Hardware) => "取决于别的硬件",
            (Self::Chinese, Reason::Picture) => "图或表已丢失",
            (Self::Chinese, Reason::Product) => "产品已无从获得",
            (Self::Chinese, Reason::Contradiction) => "原文自相矛盾",
        }
    }
}

/// The words of a page. `{}` stands for what a page fills in.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) holds: &'static str,
    pub(super) holds_then_and_now: &'static str,
    pub(super) holds_now: &'static str,
    pub(super) holds_then: &'static str,
    pub(super) does_not_hold: &'static str,
    pub(super) undecided: &'static str,
    pub(super) other_version: &'static str,
    pub(super) not_run: &'static str,
    pub(super) absent_then: &'static str,
    pub(super) not_comparable: &'static str,
    pub(super) nothing_committed: &'static str,
    pub(super) may_be_chance: &'static str,
    pub(super) not_shown: &'static str,
    pub(super) starts_to_decide: &'static str,
    pub(super) capacity: &'static str,
    pub(super) too_few: &'static str,
    pub(super) gate: &'static str,
    pub(super) starts: &'static str,
    pub(super) one_run: &'static str,
    pub(super) two_runs: &'static str,
    pub(super) runs: &'static str,
    pub(super) beside: &'static str,
    pub(super) more: &'static str,
    pub(super) less: &'static str,
    pub(super) to: &'static str,
    pub(super) then_figure: &'static str,
    pub(super) other_language: &'static str,
    pub(super) index: &'static str,
    pub(super) post_heads: &'static str,
    pub(super) unknown: &'static str,
    pub(super) copy_of: &'static str,
    pub(super) layout: &'static str,
    pub(super) layout_there: &'static str,
    pub(super) layout_here: &'static str,
    pub(super) picture: &'static str,
    pub(super) legend_rings: &'static str,
    pub(super) legend_then: &'static str,
    pub(super) legend_now: &'static str,
    pub(super) sentences: &'static str,
    pub(super) sentence_heads: &'static str,
    pub(super) reproduced_by: &'static str,
    pub(super) own: &'static str,
    pub(super) own_heads: &'static str,
    pub(super) own_none: &'static str,
    pub(super) explains: &'static str,
    pub(super) repeat: &'static str,
    pub(super) numbers: &'static str,
    pub(super) remarks: &'static str,
    pub(super) blocks: &'static str,
    pub(super) number: &'static str,
    pub(super) here: &'static str,
    pub(super) calls: &'static str,
    pub(super) calls_heads: &'static str,
    pub(super) intervals: &'static str,
    pub(super) numbers_heads: &'static str,
    pub(super) settings_heads: &'static str,
    pub(super) comma: &'static str,
    pub(super) semicolon: &'static str,
    pub(super) colon: &'static str,
    pub(super) stop: &'static str,
}

/// `template` with its `{}` filled in from left to right.
pub(super) fn filled(template: &str, values: &[&str]) -> String {
    let mut text = template.to_owned();
    for value in values {
        text = text.replacen("{}", value, 1);
    }
    text
}

const ENGLISH: Words = Words {
    holds: "holds",
    holds_then_and_now: "**holds then and now**",
    holds_now: "**holds now**",
    holds_then: "**holds then**",
    does_not_hold: "**does not hold**",
    undecided: "undecided",
    other_version: "of another version; only its own decides it",
    not_run: "not run yet",
    absent_then: "looked at with today's software alone",
    not_comparable: "not comparable: ",
    nothing_committed: "no committed result",
    may_be_chance: "may be chance",
    not_shown: "not shown",
    starts_to_decide: "about {} starts would decide it",
    capacity: "capacity by `{}`",
    too_few: "too few starts, {} of {}",
    gate: "no claim (gate `{}`)",
    starts: "starts {} to {}",
    one_run: "one run",
    two_runs: "two runs",
    runs: "{} runs",
    beside: "Beside it: ",
    more: "more",
    less: "less",
    to: " to ",
    then_figure: "{} (there {})",
    other_language: "[中文]({})",
    index: "[All five posts](../published.md)",
    post_heads: "| title | author | date | address |\n|---|---|---|---|\n",
    unknown: "*unknown*",
    copy_of: "*unknown*; our copy is of {}",
    layout: "Who shared a machine, in the post and here",
    layout_there: "post",
    layout_here: "here",
    picture: "Published ratios, and ours; counts of ours are drawn over the published ones",
    legend_rings: "published",
    legend_then: "its own software, run today",
    legend_now: "today's software, interval of 95 %",
    sentences: "Its sentences",
    sentence_heads: "| sentence, and where it stands | there | then | now | verdict |\n|---|---|---|---|---|\n",
    reproduced_by: "*Then* is its own software, run today: `catamaran lab prepare {} --check`.",
    own: "Catamaran in its place",
    own_heads: "| compared | ratio |\n|---|---|\n",
    own_none: "No committed result decides it yet.",
    explains: "Why figures differ",
    repeat: "Measure it yourself: `{}`.",
    numbers: "Every number of the post, and ours beside it",
    remarks: "What is to be known of its figures:",
    blocks: "ab's numbers, each of one run; ours with the post's own values, made once.",
    number: "number",
    here: "here",
    calls: "{}, {}; for a request: by `{}`, of which there is one each.",
    calls_heads: "| call | calls | errors | for a request | here | % of time | seconds | µs a call |\n|---|---|---|---|---|---|---|---|\n",
    intervals: "Brackets in this table are the post's interval, and the lowest and the highest of our runs.",
    numbers_heads: "| number | where it stands | published | here |\n|---|---|---|---|\n",
    settings_heads: "| setting | where it stands | published |\n|---|---|---|\n",
    comma: ", ",
    semicolon: "; ",
    colon: ": ",
    stop: ". ",
};

const CHINESE: Words = Words {
    holds: "成立",
    holds_then_and_now: "**当时和今天都成立**",
    holds_now: "**今天成立**",
    holds_then: "**当时成立**",
    does_not_hold: "**不成立**",
    undecided: "未判定",
    other_version: "版本不同，只有原版本才能判定",
    not_run: "尚未重测",
    absent_then: "只用今天的软件测",
    not_comparable: "不可比：",
    nothing_committed: "没有已提交的结果",
    may_be_chance: "可能是偶然",
    not_shown: "未证实",
    starts_to_decide: "约 {} 次启动可以判定",
    capacity: "按 `{}` 计的容量",
    too_few: "启动次数太少，{} / {}",
    gate: "不下结论（关卡 `{}`）",
    starts: "各次启动 {} 到 {}",
    one_run: "一次运行",
    two_runs: "两次运行",
    runs: "{} 次运行",
    beside: "旁边：",
    more: "更多",
    less: "更少",
    to: " 到 ",
    then_figure: "{}（原文 {}）",
    other_language: "[English]({})",
    index: "[全部五篇](../published.md)",
    post_heads: "| 标题 | 作者 | 日期 | 地址 |\n|---|---|---|---|\n",
    unknown: "*未知*",
    copy_of: "*未知*；我们的副本是 {} 的",
    layout: "谁与谁共用一台机器：原文与这里",
    layout_there: "原文",
    layout_here: "这里",
    picture: "原文的比值与我们的；计数画成我们的除以原文的",
    legend_rings: "原文",
    legend_then: "它自己的软件，今天运行",
    legend_now: "今天的软件，95 % 区间",
    sentences: "原文的句子",
    sentence_heads: "| 句子及其位置 | 原文 | 当时 | 今天 | 判定 |\n|---|---|---|---|---|\n",
    reproduced_by: "*当时*是指今天运行它自己的软件：`catamaran lab prepare {} --check`。",
    own: "换成 Catamaran",
    own_heads: "| 比较 | 比值 |\n|---|---|\n",
    own_none: "还没有已提交的结果能够判定。",
    explains: "数字为何不同",
    repeat: "自己测量：`{}`。",
    numbers: "原文的每个数字，以及我们的",
    remarks: "关于这些数字须知：",
    blocks: "ab 的数字，各为一次运行；我们的用原文自己的参数，做一次。",
    number: "数字",
    here: "这里",
    calls: "{}，{}；每个请求：除以 `{}`，它每个请求一次。",
    calls_heads: "| 调用 | 次数 | 错误 | 每个请求 | 这里 | 时间 % | 秒 | 每次 µs |\n|---|---|---|---|---|---|---|---|\n",
    intervals: "此表方括号里是原文的区间，以及我们各次运行的最低和最高。",
    numbers_heads: "| 数字 | 位置 | 原文 | 这里 |\n|---|---|---|---|\n",
    settings_heads: "| 设置 | 位置 | 原文 |\n|---|---|---|\n",
    comma: "，",
    semicolon: "；",
    colon: "：",
    stop: "。",
};
