//! The body of a failure, in each surface's own shape.

use serde_json::Value;

use super::Surface;

/// The message of an error body with its status.
///
/// # Errors
/// What is wrong with it.
pub fn error_message(surface: Surface, status: u16, body: &Value) -> Result<String, String> {
    let error = &body["error"];
    let message = match surface {
        Surface::OpenAiChat | Surface::OpenAiResponses => {
            // A compatible server's own error is told as it sent it, and not all of them send every
            // member; what is there has its type.
            for member in ["type", "param"] {
                must(
                    error[member].is_string() || error[member].is_null(),
                    body,
                    member,
                )?;
            }
            must(!error["code"].is_object(), body, "code")?;
            &error["message"]
        }
        Surface::AnthropicMessages => {
            must(body["type"] == "error", body, "type")?;
            must(error["type"].is_string(), body, "error.type")?;
            must(body["request_id"].is_string(), body, "request_id")?;
            &error["message"]
        }
        Surface::Gemini => {
            must(error["code"] == status, body, "error.code")?;
            must(error["status"].is_string(), body, "error.status")?;
            &error["message"]
        }
        Surface::CohereV2 | Surface::BedrockConverse => &body["message"],
    };
    let message = message.as_str().filter(|message| !message.is_empty());
    Ok(message.ok_or(format!("no message in {body}"))?.to_owned())
}

fn must(holds: bool, body: &Value, member: &str) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(format!("{member} is missing or wrong in {body}"))
    }
}
