//! Sysctls of `net.ipv4` as changes of a profile.

use netcore_tcp::Profile;
use netcore_tcp::profile::{BufferSizes, Detection, WindowShare};
use toml::Value;

/// The sysctls there are.
const KNOWN: &str = "tcp_reordering, tcp_max_reordering, tcp_no_metrics_save, tcp_rmem, tcp_wmem, tcp_moderate_rcvbuf, \
tcp_adv_win_scale, tcp_slow_start_after_idle, tcp_timestamps, tcp_sack, tcp_dsack, tcp_fack, tcp_frto, tcp_ecn, \
tcp_window_scaling, tcp_limit_output_bytes, tcp_min_tso_segs, tcp_tso_win_divisor, tcp_pacing_ss_ratio, \
tcp_pacing_ca_ratio, tcp_retries2, tcp_syn_retries";

/// What is wrong, and what is allowed.
type Wrong = (String, String);

/// Sets `net.ipv4.name` to `value`.
pub(super) fn set(profile: &mut Profile, name: &str, value: &Value) -> Result<(), Wrong> {
    let wrong = |allowed: &str| (format!("{name} is {value}"), allowed.to_string());
    let number = || {
        let n = value.as_integer().or_else(|| value.as_bool().map(i64::from));
        n.and_then(|n| u32::try_from(n).ok()).ok_or_else(|| wrong("0 to 4294967295"))
    };
    let flag = || match number()? {
        0 => Ok(false),
        1 | 2 => Ok(true),
        _ => Err(wrong("0 or 1")),
    };
    let sizes = || {
        let allowed = "three numbers: least, default and largest size, bytes";
        let list = value.as_array().ok_or_else(|| wrong(allowed))?;
        let list: Vec<u64> = list.iter().filter_map(Value::as_integer).filter_map(|n| n.try_into().ok()).collect();
        match list[..] {
            [min, default, max] => Ok(BufferSizes { min, default, max }),
            _ => Err(wrong(allowed)),
        }
    };
    match name {
        "tcp_reordering" => profile.reordering = number()?,
        "tcp_max_reordering" => profile.max_reordering = number()?,
        "tcp_no_metrics_save" => profile.save_metrics = !flag()?,
        "tcp_rmem" => profile.rmem = sizes()?,
        "tcp_wmem" => profile.wmem = sizes()?,
        "tcp_moderate_rcvbuf" => profile.moderate_rcvbuf = flag()?,
        "tcp_adv_win_scale" => {
            let scale = u8::try_from(number()?).map_err(|_| wrong("1 to 31"))?;
            profile.window_share = WindowShare::Scale(scale);
        }
        "tcp_slow_start_after_idle" => profile.slow_start_after_idle = flag()?,
        "tcp_timestamps" => profile.timestamps = flag()?,
        "tcp_sack" => profile.sack = flag()?,
        "tcp_dsack" => profile.dsack = flag()?,
        "tcp_fack" => {
            if !matches!(profile.detection, Detection::Rack) {
                profile.detection = if flag()? { Detection::Fack } else { Detection::Sack };
            } else if flag()? {
                return Err((
                    format!("{name} is on in profile {}", profile.name),
                    "profiles before linux-current".into(),
                ));
            }
        }
        "tcp_frto" => profile.frto = flag()?,
        "tcp_ecn" => profile.ecn = number()? == 1,
        "tcp_window_scaling" => profile.window_scaling = flag()?,
        "tcp_limit_output_bytes" => profile.limit_output_bytes = u64::from(number()?),
        "tcp_min_tso_segs" => profile.min_tso_segs = number()?,
        "tcp_tso_win_divisor" => profile.tso_win_divisor = number()?,
        "tcp_pacing_ss_ratio" => profile.pacing_ss_ratio = number()?,
        "tcp_pacing_ca_ratio" => profile.pacing_ca_ratio = number()?,
        "tcp_retries2" => profile.retries2 = number()?,
        "tcp_syn_retries" => profile.syn_retries = number()?,
        _ => return Err((format!("there is no sysctl {name}"), KNOWN.into())),
    }
    Ok(())
}
