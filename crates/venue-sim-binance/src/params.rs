//! Parameters of a request, of a JSON object or a form, with a note of those that were read: the exchange refuses a
//! request that has others.

use serde_json::{Map, Value};
use tickpath_market::{DECIMALS, DecimalError, Side, parse_decimal};

use crate::codes::{ApiError, Code};

const DECIMAL_RANGE: &str = r"^([0-9]{1,20})(\.[0-9]{1,20})?$";
const NUMBER_RANGE: &str = "^[0-9]{1,20}$";
const NAME_RANGE: &str = "^[a-zA-Z0-9-_]{1,36}$";

/// Parameters of a request.
#[derive(Debug)]
pub(crate) struct RequestParams {
    params: Vec<RequestParam>,
}

#[derive(Debug)]
struct RequestParam {
    name: String,
    value: String,
    is_read: bool,
}

impl RequestParams {
    /// Reads the parameters of a request on the WebSocket API.
    pub(crate) fn of_json(params: &Map<String, Value>) -> Self {
        let param = |(name, value): (&String, &Value)| RequestParam::new(name.clone(), value_text(value));
        Self { params: params.iter().map(param).collect() }
    }

    /// Reads the query and the form of an HTTP request; a parameter of both is that of the query.
    pub(crate) fn of_form(query: &str, body: &str) -> Result<Self, ApiError> {
        let mut read = Self { params: form_params(query)? };
        for param in form_params(body)? {
            if !read.has(&param.name) {
                read.params.push(param);
            }
        }
        Ok(read)
    }

    /// Returns whether a parameter was sent.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.params.iter().any(|param| param.name == name)
    }

    /// Returns the text of a parameter, which stays unread.
    pub(crate) fn peek(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|param| param.name == name).map(|param| param.value.as_str())
    }

    /// Reads a parameter that may be absent.
    pub(crate) fn optional(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        let Some(param) = self.params.iter_mut().find(|param| param.name == name) else { return Ok(None) };
        param.is_read = true;
        if param.value.is_empty() { Err(Code::Empty.about(&[name])) } else { Ok(Some(param.value.clone())) }
    }

    /// Reads a parameter that must be present.
    pub(crate) fn required(&mut self, name: &str) -> Result<String, ApiError> {
        let value = self.optional(name).map_err(|_| missing(name))?;
        value.ok_or_else(|| missing(name))
    }

    /// Reads a decimal in units of 10⁻⁸.
    pub(crate) fn decimal(&mut self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.optional(name)? else { return Ok(None) };
        let (whole, fraction) = text.split_once('.').unwrap_or((text.as_str(), "0"));
        if !is_digits(whole) || !is_digits(fraction) {
            return Err(Code::IllegalCharacters.about(&[name, DECIMAL_RANGE]));
        }
        match parse_decimal(&text, DECIMALS) {
            Ok(units) => Ok(Some(units)),
            Err(DecimalError::TooPrecise) => Err(Code::TooPrecise.about(&[name])),
            Err(DecimalError::TooLarge | DecimalError::NotANumber) => Err(Code::Overflow.about(&[name])),
        }
    }

    /// Reads a decimal that must be present.
    pub(crate) fn required_decimal(&mut self, name: &str) -> Result<i64, ApiError> {
        self.required(name)?;
        self.decimal(name)?.ok_or_else(|| missing(name))
    }

    /// Reads a whole number.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.optional(name)? else { return Ok(None) };
        if !is_digits(&text) {
            return Err(Code::IllegalCharacters.about(&[name, NUMBER_RANGE]));
        }
        text.parse().map(Some).map_err(|_| Code::Overflow.about(&[name]))
    }

    /// Reads a number of items, with its default and its greatest value.
    pub(crate) fn limit(&mut self, default: usize, greatest: usize) -> Result<usize, ApiError> {
        let limit = self.number("limit")?.map_or(default, |limit| usize::try_from(limit).unwrap_or(greatest));
        if limit == 0 { Err(Code::BadValue.about(&["limit"])) } else { Ok(limit.min(greatest)) }
    }

    /// Reads true or false.
    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.optional(name)?.as_deref() {
            None => Ok(None),
            Some("true" | "TRUE") => Ok(Some(true)),
            Some("false" | "FALSE") => Ok(Some(false)),
            Some(_) => Err(Code::BadValue.about(&[name])),
        }
    }

    /// Reads a client's id of an order.
    pub(crate) fn client_id(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        let id = self.optional(name)?;
        let is_good = |id: &String| {
            id.len() <= 36 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if id.as_ref().is_none_or(is_good) { Ok(id) } else { Err(Code::IllegalCharacters.about(&[name, NAME_RANGE])) }
    }

    /// Reads the side of an order.
    pub(crate) fn side(&mut self) -> Result<Side, ApiError> {
        match self.required("side")?.as_str() {
            "BUY" => Ok(Side::Buy),
            "SELL" => Ok(Side::Sell),
            _ => Err(Code::Side.error()),
        }
    }

    /// Refuses a parameter that does not belong to the request.
    pub(crate) fn refuse(&self, name: &str) -> Result<(), ApiError> {
        if self.has(name) { Err(Code::NotRequired.about(&[name])) } else { Ok(()) }
    }

    /// Notes parameters as read whose values change nothing here.
    pub(crate) fn ignore(&mut self, names: &[&str]) {
        for param in self.params.iter_mut().filter(|param| names.contains(&param.name.as_str())) {
            param.is_read = true;
        }
    }

    /// Refuses the request if a parameter was not read.
    pub(crate) fn finish(&self) -> Result<(), ApiError> {
        let read = self.params.iter().filter(|param| param.is_read).count();
        if read == self.params.len() {
            return Ok(());
        }
        Err(Code::Unread.about(&[&read.to_string(), &self.params.len().to_string()]))
    }
}

impl RequestParam {
    fn new(name: String, value: String) -> Self {
        Self { name, value, is_read: false }
    }
}

/// Returns a JSON value as it stands in the text that a client signs.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Decodes a text of a query or a form; none if an escape is not valid.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        bytes.push(match first {
            b'+' => b' ',
            b'%' => {
                let digits = rest.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
                rest = &rest[2..];
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn form_params(form: &str) -> Result<Vec<RequestParam>, ApiError> {
    let mut params: Vec<RequestParam> = Vec::new();
    for pair in form.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = percent_decoded(name).zip(percent_decoded(value));
        let (name, value) = decoded.ok_or_else(|| Code::IllegalCharacters.about(&[name, "percent-encoded UTF-8"]))?;
        if params.iter().any(|known| known.name == name) {
            return Err(Code::DuplicateParameter.error());
        }
        params.push(RequestParam::new(name, value));
    }
    Ok(params)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn missing(name: &str) -> ApiError {
    Code::Mandatory.about(&[name])
}
