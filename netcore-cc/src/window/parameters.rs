//! The parameters of Linux's `tcp_cubic` module and the factors computed from them.

/// The module parameters of CUBIC that concern the window. Defaults are the current kernel's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CubicParameters {
    /// Lower the remembered maximum further when congestion comes before it was reached again.
    pub fast_convergence: bool,
    /// Window kept on congestion, in 1024ths: 1 to 1023.
    pub beta: u32,
    /// Threshold at the start, segments, 0 for none. Used only while HyStart is off.
    pub initial_ssthresh: u32,
    /// C × 1024 / 10 of the cubic: 1 to 100,000.
    pub bic_scale: u32,
    /// Never grow slower than Reno would.
    pub tcp_friendliness: bool,
    /// Not a kernel parameter: on undo restore the whole epoch, not the window alone as Linux does.
    pub restore_epoch_on_undo: bool,
}

impl Default for CubicParameters {
    fn default() -> Self {
        Self {
            fast_convergence: true,
            beta: 717,
            initial_ssthresh: 0,
            bic_scale: 41,
            tcp_friendliness: true,
            restore_epoch_on_undo: false,
        }
    }
}

/// A parameter out of range.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// `beta` would divide by zero or grow on loss.
    #[error("beta {0}: allowed are 1 to 1023 (1024ths of the window)")]
    Beta(u32),
    /// `bic_scale` would divide by zero or overflow.
    #[error("bic_scale {0}: allowed are 1 to 100000")]
    BicScale(u32),
    /// `hystart_detect` names an unknown detector.
    #[error("hystart_detect {0}: allowed are 0 to 3 (1 ACK train, 2 delay)")]
    Detect(u32),
    /// HZ out of range.
    #[error("hz {0}: allowed are 1 to 1200")]
    Hz(u32),
    /// No such parameter for this algorithm.
    #[error("unknown parameter \"{name}\"; allowed are {allowed}")]
    Unknown {
        /// What was asked for.
        name: alloc::string::String,
        /// What there is.
        allowed: &'static str,
    },
    /// Not a number, or not a boolean where one is wanted.
    #[error("{name}=\"{value}\": allowed are {allowed}")]
    Value {
        /// The parameter.
        name: alloc::string::String,
        /// The text.
        value: alloc::string::String,
        /// What there is.
        allowed: &'static str,
    },
}

impl CubicParameters {
    /// Checks the ranges.
    pub fn validate(&self) -> Result<(), ParameterError> {
        if !(1..=1023).contains(&self.beta) {
            return Err(ParameterError::Beta(self.beta));
        }
        if !(1..=100_000).contains(&self.bic_scale) {
            return Err(ParameterError::BicScale(self.bic_scale));
        }
        Ok(())
    }

    /// The factors (`cubictcp_register`). Parameters out of range are moved into it.
    pub(crate) fn factors(&self) -> Factors {
        let beta = self.beta.clamp(1, 1023);
        let cube_rtt_scale = self.bic_scale.clamp(1, 100_000) * 10;
        Factors {
            beta,
            beta_scale: 8 * (1024 + beta) / 3 / (1024 - beta),
            cube_rtt_scale,
            cube_factor: (1 << 40) / u64::from(cube_rtt_scale),
        }
    }

    /// The maximum to remember when congestion comes at `cwnd`.
    #[inline]
    pub(crate) fn new_maximum(&self, cwnd: u32, last_max_cwnd: u32, beta: u32) -> u32 {
        if cwnd < last_max_cwnd && self.fast_convergence {
            (u64::from(cwnd) * u64::from(1024 + beta) / 2048) as u32
        } else {
            cwnd
        }
    }
}

/// What the kernel precomputes at module load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Factors {
    pub(crate) beta: u32,
    pub(crate) beta_scale: u32,
    pub(crate) cube_rtt_scale: u32,
    pub(crate) cube_factor: u64,
}

impl Factors {
    /// The threshold after congestion at `cwnd`.
    #[inline]
    pub(crate) fn reduced(&self, cwnd: u32) -> u32 {
        ((u64::from(cwnd) * u64::from(self.beta) / 1024) as u32).max(2)
    }

    /// `C × |t - K|³` in segments, times in 1/1024 s. Saturates instead of wrapping.
    #[inline]
    pub(crate) fn cube(&self, offset: u64) -> u32 {
        // Below 16 s the product fits 64 bits for every scale allowed; beyond it 128 bits are needed.
        let delta = if offset < 1 << 14 {
            (u64::from(self.cube_rtt_scale) * offset * offset * offset) >> 40
        } else {
            let offset = u128::from(offset.min(1 << 34));
            ((u128::from(self.cube_rtt_scale) * offset * offset * offset) >> 40).min(u128::from(u32::MAX)) as u64
        };
        delta as u32
    }

    /// Packets per step of the Reno-friendly estimate, at least 1.
    #[inline]
    pub(crate) fn friendly_step(&self, cwnd: u32) -> u32 {
        ((u64::from(cwnd) * u64::from(self.beta_scale)) >> 3).clamp(1, u64::from(u32::MAX)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_of_the_default_parameters() {
        let factors = CubicParameters::default().factors();
        assert_eq!((factors.beta_scale, factors.cube_rtt_scale), (15, 410));
        assert_eq!(factors.cube_factor, (1_u64 << 40) / 410);
    }

    #[test]
    fn ranges_are_checked() {
        let with = |beta, bic_scale| CubicParameters { beta, bic_scale, ..CubicParameters::default() }.validate();
        assert_eq!(with(0, 41), Err(ParameterError::Beta(0)));
        assert_eq!(with(1024, 41), Err(ParameterError::Beta(1024)));
        assert_eq!(with(1023, 0), Err(ParameterError::BicScale(0)));
        assert_eq!(with(1, 100_001), Err(ParameterError::BicScale(100_001)));
        assert_eq!(with(1, 100_000), Ok(()));
        assert_eq!(with(1023, 1), Ok(()));
    }

    #[test]
    fn the_cube_is_continuous_where_the_width_changes_and_saturates() {
        let factors = CubicParameters::default().factors();
        assert_eq!(factors.cube(4 * 1024), 25, "0.4004 * 4^3");
        let exact = |t: u128| ((410 * t * t * t) >> 40) as u32;
        for t in [(1 << 14) - 1, 1 << 14, (1 << 14) + 1, 1 << 20] {
            assert_eq!(factors.cube(t), exact(u128::from(t)));
        }
        assert_eq!(factors.cube(u64::MAX), u32::MAX);
        let steep = CubicParameters { bic_scale: 100_000, ..CubicParameters::default() }.factors();
        assert_eq!(steep.cube((1 << 14) - 1), ((1_000_000_u128 * 16383 * 16383 * 16383) >> 40) as u32);
    }

    #[test]
    fn fast_convergence_lowers_the_maximum_before_the_reduction() {
        let parameters = CubicParameters::default();
        assert_eq!(parameters.new_maximum(100, 120, 717), 85);
        assert_eq!(parameters.new_maximum(100, 100, 717), 100);
        assert_eq!(CubicParameters { fast_convergence: false, ..parameters }.new_maximum(100, 120, 717), 100);
        assert_eq!(parameters.factors().reduced(100), 70);
        assert_eq!(parameters.factors().reduced(2), 2);
        assert_eq!(parameters.factors().friendly_step(7), 13);
        let slow = CubicParameters { beta: 1, ..parameters }.factors();
        assert_eq!(slow.friendly_step(1), 1);
    }
}
