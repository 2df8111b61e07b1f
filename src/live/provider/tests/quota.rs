//! What a quota beyond a bucket of tokens looks like at a socket.

use super::*;

#[test]
fn a_key_that_nobody_has_is_told_so_and_each_account_has_its_own_quota() {
    let quota = Quota { accounts: vec!["one".into(), "two".into()], ..config("127.0.0.1:0").quota };
    for engine in [Engine::Stream, Engine::Wiremock] {
        let (shell, _seen) = start(&Config { quota: quota.clone(), engine, ..config("127.0.0.1:0") });
        let with = |header: &str| post(&shell, header, &body("u")).0;
        assert_eq!(with("authorization: Bearer three\r\n"), 401);
        assert_eq!(with(""), 401);
        let (one, two) = ("authorization: Bearer one\r\n", "x-api-key: two\r\n");
        assert_eq!([with(one), with(one), with(one), with(two)], [200, 200, 429, 200]);
    }
}

#[test]
fn a_limit_of_requests_is_told_in_the_headers_and_the_error_of_either_api() {
    let quota = Quota { requests: Rate::per_minute(2), ..config("127.0.0.1:0").quota };
    let start = |api| start(&Config { api, quota: quota.clone(), ..streaming() }).0;
    let (openai, anthropic) = (start(&OpenAi as &dyn Api), start(&Anthropic as &dyn Api));
    let asks = [
        (
            &openai,
            &OpenAi as &dyn Api,
            "x-ratelimit-limit-requests: 2\r\n",
            "x-ratelimit-remaining-requests: 0\r\n",
        ),
        (
            &anthropic,
            &Anthropic as &dyn Api,
            "anthropic-ratelimit-requests-limit: 2\r\n",
            "anthropic-ratelimit-requests-remaining: 0\r\n",
        ),
    ];
    for (shell, api, limit, remaining) in asks {
        let body = api.request("m", &openai::prompt(10, 60), Tokens::new(10), "u", false);
        let line = format!("POST {}", api.path());
        // a burst of 40 s holds one request of two a minute
        let (status, head, _) = call(shell, &line, "", &body);
        assert!(status == 200 && head.contains(limit) && head.contains(remaining), "{status} {head}");
        let (status, head, text) = call(shell, &line, "", &body);
        assert!(status == 429 && head.contains("retry-after: ") && head.contains(limit), "{status} {head}");
        let told =
            serde_json::from_str::<Value>(&text).unwrap()["error"]["message"].as_str().unwrap().to_owned();
        assert!(told.contains("requests per min"), "{told}");
    }
}
